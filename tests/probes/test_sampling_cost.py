"""What reading the machine twice a second costs: at most 1 % of one core, with an NVIDIA GPU's library too.

Run with `uv run pytest -m benchmark -s tests/probes/test_sampling_cost.py`; it takes half a minute.
"""

from __future__ import annotations

import os
import time

import pytest

import probes
from homeai.events import Sample
from probes.reading import Scene
from probes.sampler import Sampler
from tests.benchmarks.report import long_or_brief, say, tell
from tests.probes.conftest import FakeDriver

pytestmark = pytest.mark.benchmark

SECONDS = long_or_brief(20.0, 4.0)


def test_sampling_twice_a_second(driver: FakeDriver) -> None:
    samples: list[Sample] = []
    sampler = Sampler(probes.discover(Scene(engine_pid=os.getppid)), samples.append)
    sampler.start()
    time.sleep(2.0)  # imports and first readings
    samples.clear()
    began_s, began_cpu_s = time.monotonic(), time.process_time()
    time.sleep(SECONDS)
    elapsed_s, cpu_s = time.monotonic() - began_s, time.process_time() - began_cpu_s
    sampler.stop()
    share = 100.0 * cpu_s / elapsed_s
    say("sampling at 2 Hz", f"{share:.2f} % of one core", "at most 1 %", share <= 1.0)
    own_ms = {name: 0.0 for name in sorted({sample.probe for sample in samples})}
    for sample in samples:
        own_ms[sample.probe] += sample.cpu_ns / 1e6
    readings = len(samples) / len(own_ms)
    tell("a reading, in ms of processor time", ", ".join(f"{name} {ms / readings:.2f}" for name, ms in own_ms.items()))
    assert share < 5.0
