"""The forced end of a stuck dashboard: it does not wait for what never answers."""

from __future__ import annotations

import subprocess
import sys

STUCK = """
import threading
from homeai.app import leaving
leaving.PATIENCE_S = 0.2
leaving.WayOut(lambda status: None, threading.Event().wait)._force(129)
"""


def test_a_close_that_never_returns_holds_up_no_end() -> None:
    assert subprocess.run([sys.executable, "-c", STUCK], timeout=60, check=False).returncode == 129
