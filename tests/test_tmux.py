"""The tests' own eyes: what they read off a terminal is a picture that a program drew, never parts of two."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.tmux import Tmux, needs_tmux

pytestmark = needs_tmux

SLOW_DRAWER = """
import os, time
number = 0
while True:
    number += 1
    for half in (range(1, 18), range(18, 35)):
        os.write(1, b"".join(b"\\x1b[%d;1H%06d" % (row, number) for row in half))
        begun = time.monotonic()
        while time.monotonic() < begun + 0.005:
            pass
    time.sleep(0.1)
"""


def test_a_picture_is_never_parts_of_two(tmp_path: Path) -> None:
    window = Tmux(tmp_path / "tmux", os.environ, (80, 36), sys.executable, "-c", SLOW_DRAWER)
    seen: set[str] = set()
    try:
        window.until_shown("000002")
        while len(seen) < 15:
            rows = window.screen().split()[:34]
            assert len(set(rows)) == 1, rows
            seen.add(rows[0])
    finally:
        window.close()
