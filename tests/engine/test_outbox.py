"""The outgoing lane: at once after a quiet time, then at its pace, all in order; a reader that is gone is noticed."""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from pathlib import Path

import pytest

from homeai.engine.outbox import Outbox
from homeai.engine.wire import AnyReport, Pong, decode_report
from homeai.events import Ended, Notice, Text
from homeai.whole import write_all
from tests.engine.recorder import eventually, nothing_changes
from tests.stopwatch import Stopwatch

AGES_NS = 3600 * 10**9


class Sink:
    """Keeps every bundle that is written."""

    def __init__(self) -> None:
        self.bundles: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.broken = threading.Event()

    def outbox(self, *, interval_ns: int) -> Outbox:
        return Outbox(self.bundles.put, on_broken=self.broken.set, interval_ns=interval_ns)

    def next(self) -> list[AnyReport]:
        return [decode_report(line) for line in self.bundles.get(timeout=60).splitlines()]


def notice(number: int) -> Notice:
    return Notice(at_ns=number, code="n", message=str(number))


def test_the_first_fact_goes_at_once_and_the_next_wait_for_their_time() -> None:
    sink = Sink()
    outbox = sink.outbox(interval_ns=AGES_NS)
    outbox.emit(notice(1))
    assert sink.next() == [notice(1)]
    outbox.emit(notice(2))
    outbox.emit(notice(3))
    time.sleep(0.05)
    assert sink.bundles.empty()
    outbox.close(10)
    assert sink.next() == [notice(2), notice(3)]


@pytest.mark.parametrize("urgent", [Ended(at_ns=9, answer_id=1, finish_reason="stop"), Pong(token=1, clock_ns=9)])
def test_what_somebody_waits_for_takes_the_rest_along(urgent: AnyReport) -> None:
    sink = Sink()
    outbox = sink.outbox(interval_ns=AGES_NS)
    outbox.emit(notice(1))
    sink.next()
    outbox.emit(notice(2))
    outbox.emit(urgent)
    assert sink.next() == [notice(2), urgent]
    outbox.close(10)


def test_a_fact_that_waits_goes_out_by_itself() -> None:
    sink = Sink()
    outbox = sink.outbox(interval_ns=50_000_000)
    outbox.emit(notice(1))
    assert sink.next() == [notice(1)]
    written_at = time.monotonic()
    outbox.emit(notice(2))
    assert sink.next() == [notice(2)]
    assert time.monotonic() - written_at >= 0.03
    outbox.close(10)


def test_a_fast_answer_makes_few_bundles_and_loses_nothing() -> None:
    sink = Sink()
    outbox = sink.outbox(interval_ns=33_000_000)
    began_at = time.monotonic()
    for number in range(400):
        outbox.emit(Text(at_ns=number, answer_id=1, channel="answer", text=f"{number} "))
        time.sleep(0.001)
    took_s = time.monotonic() - began_at
    outbox.close(10)
    text = ""
    bundles = 0
    while not sink.bundles.empty():
        bundles += 1
        for report in sink.next():
            assert isinstance(report, Text)
            text += report.text
    assert text == "".join(f"{number} " for number in range(400))
    assert bundles <= took_s / 0.033 + 3


@pytest.mark.skipif(sys.platform != "linux", reason="reads the kernel's count of a thread's switches")
def test_nothing_wakes_while_there_is_nothing_to_send() -> None:
    sink = Sink()
    outbox = sink.outbox(interval_ns=1_000_000)
    outbox.emit(notice(1))
    sink.next()
    status = Path(f"/proc/self/task/{outbox._thread.native_id}/status")

    def switches() -> str:
        return next(line for line in status.read_text().splitlines() if line.startswith("voluntary"))

    assert eventually(lambda: nothing_changes(switches))
    outbox.close(10)


def test_a_closed_reader_is_noticed() -> None:
    reading, writing = os.pipe()
    broken = threading.Event()
    outbox = Outbox(lambda content: write_all(writing, content), on_broken=broken.set)
    os.close(reading)
    outbox.emit(notice(1))
    assert broken.wait(60)
    os.close(writing)


def test_a_reader_that_stalls_holds_up_neither_emit_nor_close() -> None:
    reading, writing = os.pipe()
    outbox = Outbox(lambda content: write_all(writing, content), on_broken=lambda: None, interval_ns=0)
    watch = Stopwatch()
    for number in range(200):
        outbox.emit(Notice(at_ns=number, code="n", message="x" * 10_000))
    outbox.close(0.05)
    assert watch.seconds < 5
    with os.fdopen(reading, "rb") as lines:
        received = [decode_report(lines.readline()) for _ in range(200)]
    assert [report.at_ns for report in received if isinstance(report, Notice)] == list(range(200))
    assert eventually(lambda: not outbox._thread.is_alive())
    os.close(writing)


def test_a_report_that_cannot_be_encoded_ends_the_lane_with_a_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    sink = Sink()
    outbox = sink.outbox(interval_ns=0)
    outbox.emit(object())  # type: ignore[arg-type]
    assert sink.broken.wait(60)
    assert "TypeError" in capfd.readouterr().err
    outbox.close(10)
