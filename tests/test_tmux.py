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
        time.sleep(0.005)
    time.sleep(0.1)
"""


def test_a_picture_is_never_parts_of_two(tmp_path: Path) -> None:
    window = Tmux(tmp_path / "tmux", os.environ, (80, 36), sys.executable, "-c", SLOW_DRAWER)
    try:
        window.until_shown("000002")
        pictures = [window.screen().split()[:34] for _ in range(40)]
    finally:
        window.close()
    assert [len(set(rows)) for rows in pictures] == [1] * len(pictures)
    assert len({rows[0] for rows in pictures}) > 10
