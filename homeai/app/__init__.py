"""The dashboard: a Textual application over a session."""
