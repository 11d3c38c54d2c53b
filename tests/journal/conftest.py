"""The record's tests."""

from __future__ import annotations

import sys

# They limit and kill processes, which Windows does otherwise.
collect_ignore = ["test_killed.py"] if sys.platform == "win32" else []
