"""homeai: a local home-AI dashboard for the terminal."""

__version__ = "0.1.0"
