"""The machine as the doctor looks at it: a driver that takes its time is waited for, one that hangs is not for long."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

import probes
from homeai.doctor.machine import Look
from homeai.metrics.alarms import gpus_of
from probes.reading import Reading


class Slow:
    """A GPU's probe that tells nothing before its driver wakes up."""

    name = "nvidia"

    def __init__(self) -> None:
        self.awake = threading.Event()

    def read(self) -> Reading:
        self.awake.wait(60)
        return Reading({"gpu_0_percent": 1.0})


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    probe = Slow()
    monkeypatch.setattr(probes, "discover", lambda _scene: [probe])
    yield probe
    probe.awake.set()


def test_a_driver_that_takes_its_time_is_waited_for(slow: Slow) -> None:
    with Look(60_000_000_000) as look:
        threading.Timer(0.5, slow.awake.set).start()
    assert [gpu.index for gpu in gpus_of(look.probes)] == [0]


def test_a_driver_that_hangs_is_told_so(slow: Slow) -> None:
    with Look(3_000_000_000) as look:
        pass
    assert look.probes["nvidia"].last.missing["*"].startswith("no answer for ")


def test_who_breaks_off_waits_for_nothing(slow: Slow) -> None:
    with pytest.raises(KeyboardInterrupt), Look(600_000_000_000):
        raise KeyboardInterrupt
