"""Experiments built on sessions, one file each; `comparing` is what they share to tell a difference from noise."""
