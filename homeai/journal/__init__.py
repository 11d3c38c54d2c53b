"""The record of sessions: its writer, a reader that survives damage, and the library of them all.

A record is a text file, one fact a line as `homeai.events` defines them, mode 0600, below `places.data_dir()`. Nothing
is ever changed in it but its end: sittings, and titles, are added.
"""
