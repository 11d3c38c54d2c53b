"""The tests' own watch: right on a machine at rest, slow on a busy one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.stopwatch import SLOWEST, Stopwatch


def test_it_is_never_ahead_of_the_clock_and_goes_on_by_a_twentieth_at_least() -> None:
    began_at = time.monotonic()
    watch = Stopwatch()
    time.sleep(0.2)
    assert 0.2 / SLOWEST <= watch.seconds <= time.monotonic() - began_at


@pytest.mark.skipif(not Path("/proc/pressure/cpu").exists(), reason="this system does not tell who waits")
def test_it_is_slow_while_processes_wait_for_a_processor() -> None:
    busy = [sys.executable, "-c", "print(flush=True)\nwhile True: pass"]
    rivals = [subprocess.Popen(busy, stdout=subprocess.PIPE) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        for rival in rivals:
            assert rival.stdout is not None
            rival.stdout.readline()
        began_at, watch = time.monotonic(), Stopwatch()
        time.sleep(0.3)
        assert watch.seconds < 0.7 * (time.monotonic() - began_at)
    finally:
        for rival in rivals:
            rival.kill()
            rival.communicate()
