"""Textual widgets: state in, messages out."""
