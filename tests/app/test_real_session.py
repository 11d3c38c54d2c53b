"""The screen over a real session and a real worker process, which plays scripts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from homeai.app.app import HomeaiApp
from homeai.events import AnyFact, Sampler
from homeai.metrics.view import AnswerView
from homeai.session import Session
from homeai.session.sampling import start_sampling
from tests.app.stage import MODEL, screen_text, until
from tests.engine.recorder import OPTIONS
from tests.stopwatch import Stopwatch

SIZE = (120, 36)


def scripted_app(*, measured: bool = False) -> HomeaiApp:
    def open_session(on_fact: Callable[[AnyFact], None]) -> Session:
        session = Session(options=OPTIONS, on_fact=on_fact, backend="tests.engine.scripted")
        session.use_model(MODEL)
        return session

    sampling = start_sampling if measured else None
    return HomeaiApp(open_session, sampler=Sampler(temperature=0.0), start_sampling=sampling)


def newest(app: HomeaiApp) -> AnswerView:
    """The view of the current chat's newest answer, which ended."""
    chat = app.desk.current
    assert chat.newest_id is not None
    return chat.ended[chat.newest_id]


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> HomeaiApp:
    monkeypatch.setenv("HOMEAI_SCRIPT", "load_ms=50 rate=300 prompt=100 prefill_rate=2000 chunk=16")
    return scripted_app()


async def test_a_question_is_answered_with_figures_that_add_up(app: HomeaiApp) -> None:
    try:
        async with app.run_test(size=SIZE) as pilot:
            await until(pilot, lambda: "CPU, 2 threads" in screen_text(pilot))
            app.chat_screen.prompt.text = "say=**Yes**, it is:\n\n1. one\n2. two"
            await pilot.press("enter")
            await until(pilot, lambda: app.desk.current.ended)
            for words in ("Yes, it is:", "1. one", "first token after"):
                await until(pilot, lambda words=words: words in screen_text(pilot))  # type: ignore[misc]
            rows = {row.name: row.span_ns for row in newest(app).rows}
            total = rows.pop("total")
            assert total is not None
            assert sum(span for span in rows.values() if span is not None) == total
    finally:
        app.close_session()


async def test_esc_stops_within_a_quarter_of_a_second_and_the_text_stays(app: HomeaiApp) -> None:
    try:
        async with app.run_test(size=SIZE) as pilot:
            await until(pilot, lambda: app.session is not None)
            app.chat_screen.prompt.text = "tokens=5000 rate=100"
            await pilot.press("enter")
            await until(pilot, lambda: "w20" in screen_text(pilot))
            watch = Stopwatch()
            await pilot.press("escape")
            await until(pilot, lambda: app.desk.current.ended)
            seen_s = watch.seconds
            assert seen_s < 1
            assert app.desk.current.ended
            answer = newest(app)
            assert answer.finish_reason == "cancelled"
            assert answer.stop_latency_ns is not None
            assert min(answer.stop_latency_ns / 1e9, seen_s) < 0.25
            await until(pilot, lambda: "stopped · first token" in screen_text(pilot))
            assert "w20" in screen_text(pilot)
    finally:
        app.close_session()


async def test_an_engine_that_dies_is_told_and_the_next_question_is_answered(app: HomeaiApp) -> None:
    try:
        async with app.run_test(size=SIZE) as pilot:
            await until(pilot, lambda: app.session is not None)
            app.chat_screen.prompt.text = "tokens=50 rate=50 at=20 cry=CUDA_error:_out_of_memory die=6"
            await pilot.press("enter")
            await until(pilot, lambda: "✗" in screen_text(pilot), within_s=5)
            # What was in the last bundle, 33 ms at most, may be lost.
            await until(pilot, lambda: "w5" in screen_text(pilot) and "failed · first token" in screen_text(pilot))
            app.chat_screen.prompt.text = "say=Back again."
            await pilot.press("enter")
            await until(pilot, lambda: 2 in app.desk.current.ended)
            await until(pilot, lambda: "Back again." in screen_text(pilot) and "✗" not in screen_text(pilot))
    finally:
        app.close_session()


async def test_a_load_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOMEAI_SCRIPT", "fail=1 at=load")
    app = scripted_app()
    try:
        async with app.run_test(size=SIZE) as pilot:
            await until(pilot, lambda: "✗ The script wants the load to fail." in screen_text(pilot))
            await until(pilot, lambda: "Change the script." in screen_text(pilot))
    finally:
        app.close_session()


async def test_the_machine_is_measured_and_becomes_part_of_the_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOMEAI_SCRIPT", "rate=50")
    app = scripted_app(measured=True)
    try:
        async with app.run_test(size=SIZE) as pilot:
            await until(pilot, lambda: "RAM " in screen_text(pilot))
            app.chat_screen.prompt.text = "tokens=5000"
            await pilot.press("enter")
            await until(pilot, lambda: app.desk.live)
            assert app.session is not None
            session = app.session

            def was_measured() -> bool:
                read = session.state.answers[1].machine.get("cpu", {}).get("machine_percent")
                return read is not None and read.n >= 1

            await until(pilot, was_measured)
            await until(pilot, lambda: "engine_rss_bytes" in session.state.probes["memory"].last.values)
            await pilot.press("escape")
            await until(pilot, lambda: app.desk.current.ended)
            assert was_measured()
            assert {"cpu", "memory"} <= set(session.state.probes)
            await until(pilot, lambda: "of a core" in screen_text(pilot))
    finally:
        app.close_session()


async def test_leaving_in_the_middle_ends_the_worker(app: HomeaiApp) -> None:
    import psutil

    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: app.session is not None)
        app.chat_screen.prompt.text = "tokens=5000 rate=100"
        await pilot.press("enter")
        await until(pilot, lambda: "w5" in screen_text(pilot))
        assert app.session is not None
        ready = app.session.state.engine.ready
        assert ready is not None
        await pilot.press("ctrl+q", "ctrl+q")
    app.close_session()
    assert not psutil.pid_exists(ready.pid)


async def test_two_answers_run_beside_each_other_and_closing_one_leaves_the_other(app: HomeaiApp) -> None:
    try:
        async with app.run_test(size=SIZE) as pilot:
            await until(pilot, lambda: app.session is not None)
            assert app.session is not None
            app.chat_screen.prompt.text = "tokens=800 rate=100"
            await pilot.press("enter")
            await until(pilot, lambda: "w10" in screen_text(pilot))
            await pilot.press("ctrl+n")
            app.chat_screen.prompt.text = "tokens=5000 rate=100"
            await pilot.press("enter")
            await until(pilot, lambda: "w10" in screen_text(pilot))
            first, second = (app.session.state.answers[number] for number in (1, 2))
            assert first.ended is None
            assert second.ended is None
            await until(pilot, lambda: "computed together with" in screen_text(pilot))
            await until(pilot, lambda: screen_text(pilot).splitlines()[1].count("▸ writing") == 2)
            await pilot.press("f9", "f9")
            await until(pilot, lambda: len(app.desk) == 1)
            await until(pilot, lambda: app.desk.current.ended)
            state = app.session.state
            assert newest(app).finish_reason == "stop"
            assert state.answers[2].ended is not None
            assert state.answers[2].ended.finish_reason == "cancelled"
            assert state.answers[1].answer_text == "".join(f"w{n} " for n in range(800))
            await until(pilot, lambda: "w799" in screen_text(pilot))
            await until(pilot, lambda: "partly computed together" in screen_text(pilot))
    finally:
        app.close_session()


@pytest.mark.model
async def test_two_chats_with_the_starter_model_are_computed_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from homeai.app.main import open_session
    from homeai.settings import load

    monkeypatch.setenv("HOMEAI_STATE_DIR", str(tmp_path))
    settings = load({"sequences": "2", "context": "2k"})
    short = Sampler(temperature=0.0, max_tokens=200)  # seconds, while the second one begins
    app = HomeaiApp(lambda on_fact: open_session(settings, None, on_fact), sampler=short)
    try:
        async with app.run_test(size=SIZE) as pilot:
            await until(pilot, lambda: app.session is not None and "threads" in screen_text(pilot), within_s=120)
            assert app.session is not None
            for number, question in enumerate(("Tell a story of a lighthouse.", "Tell a story of a river."), start=1):
                if number == 2:
                    await pilot.press("ctrl+n")
                    app.desk.current.sampler = Sampler(temperature=0.0, max_tokens=1000)
                app.chat_screen.prompt.text = question
                await pilot.press("enter")
                await until(pilot, partial(_has_tokens, app, number), within_s=120)
            together = "computed together with the answer in “Tell a story"
            await until(pilot, lambda: together in screen_text(pilot), within_s=30)
            await pilot.press("f9", "f9")
            await until(pilot, lambda: len(app.desk) == 1 and app.desk.current.ended, within_s=120)
            first, second = (app.session.state.answers[number] for number in (1, 2))
            view = newest(app)
            assert first.shared
            assert view.finish_reason == "length"
            assert view.ttft_ns is not None
            assert view.decode_tps is not None
            assert second.ended is not None
            assert second.ended.finish_reason == "cancelled"
            assert second.tokens.count < 1000

            # The same question by itself gives the same text: the other chat was beside it, not in it.
            await pilot.press("ctrl+n")
            app.chat_screen.prompt.text = "Tell a story of a lighthouse."
            await pilot.press("enter")
            await until(pilot, lambda: app.desk.current.ended, within_s=120)
            again = app.session.state.answers[3].answer_text
            # Numbers computed in another batch may differ in the last bit, and so a late token.
            assert again[:40] == first.answer_text[:40]
    finally:
        app.close_session()


def _has_tokens(app: HomeaiApp, answer_id: int) -> bool:
    assert app.session is not None
    answer = app.session.state.answers.get(answer_id)
    return answer is not None and answer.tokens.count > 3
