"""Settings: one table, one order of precedence, and for each value the place it came from.

Flags win over the environment, that over the settings file, that over what was measured on this machine, and that over
the default.
"""

from __future__ import annotations

from homeai.settings.resolve import Resolved, Settings, load, resolve, this_machine
from homeai.settings.table import BY_KEY, SETTINGS, Machine, Setting

__all__ = ["BY_KEY", "SETTINGS", "Machine", "Resolved", "Setting", "Settings", "load", "resolve", "this_machine"]
