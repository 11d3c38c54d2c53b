"""What the screen says in every state that a session can be in."""

from __future__ import annotations

from contextlib import suppress

import pytest

from homeai.events import EngineEnded, EngineStarting, Fault, LoadFailed, LoadProgress, Notice, Text
from tests.app.stage import StagedApp, play, ready, screen_text, until
from tests.metrics import stories
from tests.metrics.stories import ms

SIZE = (120, 36)
DIED = Fault(code="engine_died", message="The engine died (signal 9).", help="The next question starts it again.")


def text(piece: str, answer_id: int = 1) -> Text:
    return Text(at_ns=1, answer_id=answer_id, channel="answer", text=piece)


async def test_a_load_shows_how_far_it_is() -> None:
    progress = LoadProgress(at_ns=ms(500), load_id=1, stage="file", done_bytes=61_000_000, total_bytes=98_362_432)
    app = StagedApp(*stories.session_facts()[:-1], progress, now_ms=700)
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        assert "Tiny · loading  62 %  58.2 of 93.8 MiB  201 MiB/s" in screen_text(pilot).splitlines()[0]
        await play(pilot, stories.LOAD_ENDED)
        assert "loaded in 131 ms" in screen_text(pilot)
        assert "Tiny · Q4_1" in screen_text(pilot)


async def test_reading_and_writing_can_be_watched() -> None:
    app = StagedApp(*stories.session_facts(), now_ms=2500)
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pilot.press("x", "enter")
        await play(pilot, *stories.prompt_facts()[:6])
        assert "reading 256 of 604  256 tok/s  about 1 s left" in screen_text(pilot)
        app.now_ns = ms(3700)
        await play(pilot, stories.prompt_facts()[6], *stories.writing_facts()[:12])
        assert "now  15.2 tok/s" in screen_text(pilot)
        assert "w35" in screen_text(pilot)
        await play(pilot, *stories.writing_facts()[12:], stories.ended(11424.7))
        assert "first token after 2.31 s · 14.8 tok/s · 121 tokens" in screen_text(pilot)


async def test_a_dead_engine_is_told_its_text_is_kept_and_the_next_question_goes_on() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pilot.press("x", "enter")
        end = EngineEnded(at_ns=ms(3800), generation=1, fault=DIED, signal=9, stderr_tail="CUDA error: out of memory\n")
        await play(
            pilot,
            *stories.prompt_facts(),
            *stories.writing_facts()[:12],
            end,
            stories.ended(3801, "error", fault=DIED),
        )
        shown = screen_text(pilot)
        assert "✗ The engine died (signal 9)." in shown
        assert "The next question starts it again." in shown
        assert "CUDA error: out of memory" in shown
        assert "w35" in shown
        assert "failed · first token after" in shown
        await pilot.press("y", "enter")
        await until(pilot, lambda: len(app.played.asked) == 2)
        await pilot.pause()
        # The alert is gone; the reason stays with the answer that it ended.
        assert "✗" not in screen_text(pilot)
        assert "· The engine died (signal 9)." in screen_text(pilot)


async def test_an_engine_that_dies_while_nothing_runs_is_told_until_the_next_load() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await play(pilot, EngineEnded(at_ns=ms(900), generation=1, fault=DIED, signal=9))
        assert "The engine died" in screen_text(pilot)
        await play(pilot, EngineStarting(at_ns=ms(910), generation=2), stories.LOAD_STARTED, stories.LOAD_ENDED)
        assert "The engine died" not in screen_text(pilot)


async def test_an_engine_that_was_asked_to_go_is_no_news() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await play(pilot, EngineEnded(at_ns=ms(900), generation=1))
        assert "✗" not in screen_text(pilot)


@pytest.mark.parametrize(("code", "told"), [("load_failed", True), ("cancelled", False)])
async def test_a_failed_load_is_told_and_a_stopped_one_is_not(code: str, told: bool) -> None:
    app = StagedApp(*stories.session_facts()[:-1])
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        fault = Fault(code=code, message="It is too large for this machine.", help="Try a smaller one.")
        await play(pilot, LoadFailed(at_ns=ms(300), load_id=1, fault=fault))
        assert ("✗ It is too large" in screen_text(pilot)) == told


async def test_a_full_context_says_what_to_do() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pilot.press("x", "enter")
        fault = Fault(code="context_full", message="The prompt has 5,000 tokens, the context 4,096.", help="Ctrl+N.")
        await play(pilot, *stories.prompt_facts()[:2], stories.ended(2000, "error", fault=fault))
        assert "✗ The prompt has 5,000 tokens, the context 4,096." in screen_text(pilot)
        assert "failed while" in screen_text(pilot)


async def test_a_notice_is_said_once_and_not_in_the_middle_of_an_answer() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        cpu_only = Notice(at_ns=1, code="cpu_only", message="This build runs on the CPU only.", help="See the README.")
        await play(pilot, cpu_only, cpu_only)
        assert screen_text(pilot).count("This build runs on the CPU only. See the README.") == 1
        await pilot.press("x", "enter")
        fallback = Notice(at_ns=2, code="template", message="The template is broken: ChatML is used.", answer_id=1)
        await play(pilot, *stories.prompt_facts(), text("The answer "), fallback, cpu_only)
        assert "ChatML" not in screen_text(pilot)
        await play(pilot, text("goes on."), stories.ended(5000))
        shown = screen_text(pilot)
        assert "The answer goes on." in shown
        assert shown.count("The template is broken: ChatML is used.") == 1
        assert shown.count("CPU only") <= 1


async def test_all_of_the_text_arrives_however_late_it_is() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=(120, 50)) as pilot:
        await ready(pilot)
        await pilot.press("x", "enter")
        words = [text(f"word{n} " + ("\n\n" if n % 10 == 9 else "")) for n in range(100)]
        # The last words and the end come in one bundle: nothing of the tail may be lost.
        await play(pilot, *stories.prompt_facts(), *words, stories.ended(5000))
        shown = screen_text(pilot)
        assert all(f"word{n}" in shown for n in range(60, 100))


async def test_text_of_another_answer_is_not_mixed_in() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pilot.press("x", "enter")
        await play(pilot, text("mine "), text("foreign ", answer_id=7), text("too"))
        assert "mine too" in screen_text(pilot)
        assert "foreign" not in screen_text(pilot)


async def test_a_long_question_is_shown_in_part() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        app.chat_screen.prompt.text = "\n".join(f"line {n}" for n in range(14_000))
        await pilot.press("enter")
        await until(pilot, lambda: app.played.asked)
        await pilot.pause()
        assert app.played.asked[0].prompt.endswith("line 13999")
        assert "more characters" in screen_text(pilot)
        assert "line 59" in screen_text(pilot)
        assert "line 60" not in screen_text(pilot)


async def test_a_question_without_line_ends_is_shown_in_part_too() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        app.chat_screen.prompt.text = "word " * 20_000 + "end"
        await pilot.press("enter")
        await until(pilot, lambda: app.played.asked)
        await pilot.pause()
        assert app.played.asked[0].prompt.endswith("end")
        assert "and 94,003 more characters" in screen_text(pilot)


async def test_the_mouse_does_not_take_the_cursor_out_of_the_box() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pilot.click("Conversation")
        await pilot.click("#side")
        await pilot.press("tab", "x")
        assert app.chat_screen.prompt.text == "x"


async def test_a_very_long_talk_is_all_there() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        talk = app.chat_screen.conversation
        for number in range(1, 6):
            await pilot.press("x", "enter")
            await play(
                pilot,
                *(text(f"para {number}.{n}\n\n", number) for n in range(110)),
                stories.ended(3000, answer_id=number),
            )
        await pilot.pause()
        assert "para 5.109" in screen_text(pilot)
        talk.scroll_home(animate=False)
        await pilot.pause()
        assert "para 1.0 " in screen_text(pilot)


@pytest.mark.parametrize(
    ("size", "holds", "lacks"),
    [
        ((200, 50), ["this answer", "ask something", "Hello."], ["needs 40"]),
        ((100, 30), ["this answer", "ask something", "Hello."], ["needs 40"]),
        ((99, 30), ["ask something", "Hello.", "The figures of your"], ["─ this answer", "needs 40"]),
        ((80, 24), ["ask something", "Hello.", "Enter send"], ["─ this answer", "needs 40"]),
        ((40, 12), ["ask something", "Enter send"], ["─ this answer", "needs 40"]),
        ((40, 10), ["ask something"], ["needs 40"]),
        ((39, 24), ["39 columns and 24 rows", "needs 40 by 10"], ["ask something"]),
        ((80, 9), ["80 columns and 9 rows", "needs 40 by 10"], ["ask something"]),
    ],
    ids=str,
)
async def test_each_size_of_window_has_its_screen(size: tuple[int, int], holds: list[str], lacks: list[str]) -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=size) as pilot:
        await ready(pilot)
        shown = screen_text(pilot)
        assert [part for part in holds if part not in shown] == []
        assert [part for part in lacks if part in shown] == []


async def test_a_window_that_grows_again_has_everything_back() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=(120, 36)) as pilot:
        await ready(pilot)
        await pilot.press(*"draft")
        for size in ((30, 8), (80, 24), (1, 1), (120, 36)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
        shown = screen_text(pilot)
        assert "─ this answer ─" in shown
        assert "draft" in shown
        assert "loaded in 131 ms" in shown


async def test_a_crash_is_kept_for_who_started_us_and_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    app = StagedApp(*stories.session_facts())
    with suppress(ZeroDivisionError):  # the pilot raises it once more
        async with app.run_test(size=SIZE) as pilot:
            await ready(pilot)
            app.call_later(lambda: 1 // 0)
            await until(pilot, lambda: app.crash is not None)
    assert isinstance(app.crash, ZeroDivisionError)
    assert app.return_code == 1
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""
