"""The formats: one file each with a constant `FORMAT`, and the folder is the registry."""
