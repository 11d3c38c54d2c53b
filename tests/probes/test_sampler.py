"""The sampler: pace, isolation of bad probes, its own cost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

import probes.sampler
from homeai.events import Sample
from probes.reading import Probe, Reading
from probes.sampler import Sampler, next_due
from tests.stopwatch import Stopwatch


class Scripted:
    """A probe that does what it is told."""

    def __init__(self, name: str, act: Callable[[], Reading] = lambda: Reading(values={"x_percent": 1.0})) -> None:
        self.name = name
        self._act = act

    def read(self) -> Reading:
        return self._act()


@contextmanager
def sampling(*scripted: Probe, interval_s: float = 0.02) -> Iterator[list[Sample]]:
    samples: list[Sample] = []
    sampler = Sampler(scripted, samples.append, interval_s)
    sampler.start()
    try:
        yield samples
    finally:
        sampler.stop()


def wait_until(holds: Callable[[], bool], timeout_s: float = 30.0) -> None:
    watch = Stopwatch()
    while not holds():
        assert watch.seconds < timeout_s, "did not happen in time"
        time.sleep(0.005)


def of(samples: list[Sample], name: str) -> list[Sample]:
    return [sample for sample in samples if sample.probe == name]


def test_every_probe_is_sampled_at_once_and_again() -> None:
    with sampling(Scripted("a"), Scripted("b")) as samples:
        wait_until(lambda: len(of(samples, "a")) >= 3 and len(of(samples, "b")) >= 3)
    assert {sample.probe for sample in samples} == {"a", "b"}
    assert samples[0].values == {"x_percent": 1.0}


def test_took_is_what_the_reading_cost() -> None:
    def slow() -> Reading:
        time.sleep(0.03)
        return Reading()

    with sampling(Scripted("slow", slow), interval_s=0.5) as samples:
        wait_until(lambda: bool(samples))
    assert samples[0].took_ns >= 30_000_000


def test_a_probe_that_raises_says_so_and_the_others_go_on() -> None:
    def fail() -> Reading:
        raise OSError("no such device")

    with sampling(Scripted("bad", fail), Scripted("good")) as samples:
        wait_until(lambda: len(of(samples, "bad")) >= 2 and len(of(samples, "good")) >= 2)
    assert of(samples, "bad")[0].missing == {"*": "OSError: no such device"}
    assert of(samples, "bad")[0].values == {}


def test_a_blocked_probe_is_told_once_the_others_go_on_and_it_may_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes.sampler, "BLOCKED_NS", 100_000_000)
    gate = threading.Event()

    def hang() -> Reading:
        gate.wait(60)
        return Reading(values={"x_percent": 2.0})

    with sampling(Scripted("hung", hang), Scripted("good")) as samples:
        wait_until(lambda: len(of(samples, "good")) >= 15 and bool(of(samples, "hung")))
        told = of(samples, "hung")
        assert len(told) == 1
        assert told[0].missing["*"].startswith("no answer for")
        gate.set()
        wait_until(lambda: len(of(samples, "hung")) >= 3)
    assert of(samples, "hung")[1].values == {"x_percent": 2.0}


def test_nothing_comes_after_stop_even_from_a_probe_that_was_blocked() -> None:
    gate = threading.Event()

    def hang() -> Reading:
        gate.wait(60)
        return Reading()

    samples: list[Sample] = []
    sampler = Sampler([Scripted("hung", hang), Scripted("good")], samples.append, 0.01)
    sampler.start()
    wait_until(lambda: len(samples) >= 3)
    watch = Stopwatch()
    sampler.stop()
    assert watch.seconds < 1.5
    seen = len(samples)
    gate.set()
    time.sleep(0.05)
    assert len(samples) == seen


def test_a_sampler_that_was_never_started_stops() -> None:
    Sampler([Scripted("a")], print).stop()


def test_its_threads_do_not_keep_the_process_alive() -> None:
    before = set(threading.enumerate())
    with sampling(Scripted("a")) as samples:
        wait_until(lambda: bool(samples))
        ours = [thread for thread in threading.enumerate() if thread not in before]
        assert len(ours) == 2
        assert all(thread.daemon for thread in ours)


@given(
    due=st.integers(0, 10**15),
    late=st.integers(-(10**9), 10**11),
    interval=st.integers(10**6, 10**10),
)
def test_the_schedule_is_a_grid_that_being_late_does_not_shift(due: int, late: int, interval: int) -> None:
    now = due + late
    following, wait_s = next_due(due, now, interval)
    assert (following - due) % interval == 0
    assert following > due
    assert wait_s > 0
    assert following - now <= interval + max(0, -late)


def test_labels_are_told_when_they_change_and_not_taken_back_by_a_reading_without_any() -> None:
    names = iter([{"a": "x"}, {"a": "x"}, {}, {"a": "x"}, {"a": "y"}])
    with sampling(Scripted("named", lambda: Reading(labels=next(names)))) as samples:
        wait_until(lambda: len(samples) >= 5)
    assert [sample.labels for sample in samples[:5]] == [{"a": "x"}, {}, {}, {}, {"a": "y"}]


def test_the_processor_time_of_a_reading_is_told_apart_from_its_waiting() -> None:
    def act() -> Reading:
        time.sleep(0.05)
        end_ns = time.thread_time_ns() + 20_000_000
        while time.thread_time_ns() < end_ns:
            pass
        return Reading()

    with sampling(Scripted("busy", act), interval_s=0.5) as samples:
        wait_until(lambda: bool(samples))
    assert 20_000_000 <= samples[0].cpu_ns < samples[0].took_ns
