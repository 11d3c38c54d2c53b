"""The page with every figure of an answer, read off the screen and compared with the contract."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from homeai import units
from homeai.app.details_screen import DetailsScreen
from homeai.app.librarian import Records
from homeai.events import AnyFact, Expected, StopRequested
from homeai.journal.library import Library
from homeai.metrics.contract import contract
from homeai.metrics.quantities import metrics
from tests.app.stage import StagedApp, asked, play, ready, screen_text, until
from tests.metrics import stories
from tests.metrics.stories import ms

TALL = (130, 120)
STORIES: dict[str, list[AnyFact]] = {
    "whole": stories.whole_answer(),
    "stopped": [
        *stories.prompt_facts()[:6],
        StopRequested(at_ns=ms(2163), answer_id=1),
        stories.ended(2203, "cancelled"),
    ],
    "died": [*stories.prompt_facts(), *stories.writing_facts()[:14], stories.ended(6600, "error", fault=stories.DIED)],
}


def rows_by_group(shown: str) -> dict[str, dict[str, str]]:
    """By the title of its group and its label what stands behind each figure."""
    groups: dict[str, dict[str, str]] = {}
    title = ""
    for line in shown.splitlines():
        text = line.strip()
        if text.startswith("─ "):
            title = text.strip("─ ").split(" ─")[0]
            groups.setdefault(title, {})
        elif title and text:
            text = text.removeprefix("▸ ")
            groups[title].setdefault(text[:28].strip(), text[28:].strip())
    return groups


def in_words(value: float | None, kind: str) -> str:
    if value is None:
        return "n/a"
    return {
        "ms": lambda: units.span(value * 1e6),
        "tps": lambda: units.rate(value),
        "tok": lambda: f"{units.count(int(value))} tok",
        "n": lambda: units.count(int(value)),
    }[kind]()


@pytest.mark.parametrize("story", STORIES)
async def test_every_figure_on_the_screen_is_that_of_the_contract(story: str) -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=TALL) as pilot:
        await asked(pilot, *STORIES[story])
        await pilot.press("f5")
        await until(pilot, lambda: "top k" in screen_text(pilot))
        told, shown = contract(app.played.state, 1), rows_by_group(screen_text(pilot))
        labels = {metric.id: metric.label for metric in metrics().values()}
        expected = [
            ("the wait and the speed", labels["ttft_ms"], told["ttft_ms"], "ms"),
            ("the wait and the speed", labels["first_text_ms"], told["first_text_ms"], "ms"),
            ("the wait and the speed", labels["rates.prefill_tps"], told["rates"]["prefill_tps"], "tps"),
            ("the wait and the speed", labels["rates.decode_tps"], told["rates"]["decode_tps"], "tps"),
            *(
                ("where the time went", name.replace("_", " "), value, "ms")
                for name, value in told["phases_ms"].items()
            ),
            ("what reading was spent on", "computing", told["prefill_parts_ms"]["compute"], "ms"),
            ("what writing was spent on", "nothing ran", told["decode_parts_ms"]["idle"], "ms"),
            ("gaps between tokens", "gaps", told["gaps_ms"]["n"], "n"),
            *(
                ("gaps between tokens", labels[f"gaps_ms.{name}"], told["gaps_ms"][name], "ms")
                for name in ("p50", "p95", "p99", "max")
            ),
            ("tokens", "prompt", told["tokens"]["prompt"], "tok"),
            ("tokens", "reused", told["tokens"]["reused"], "tok"),
            ("tokens", "read", told["tokens"]["evaluated"], "tok"),
            ("tokens", "written", told["tokens"]["output"], "tok"),
            ("the model's load", "whole load", told["load"]["total_ms"], "ms"),
            ("the model's load", "warm-up", told["load"]["warmup_ms"], "ms"),
            ("engine", "threads, writing", told["engine"]["threads"], "n"),
            ("engine", "context", told["engine"]["context"], "tok"),
        ]
        for group, label, value, kind in expected:
            assert shown[group][label[:27]].startswith(in_words(value, kind)), (group, label, value)
        reason = told["missing"].get("gaps_ms.p99")
        if reason is not None:
            assert reason in shown["gaps between tokens"][labels["gaps_ms.p99"]]


async def test_the_key_opens_and_closes_and_so_does_esc() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=(80, 24)) as pilot:
        await asked(pilot, *stories.whole_answer())
        for closing in ("f5", "escape"):
            await pilot.press("f5")
            await until(pilot, lambda: isinstance(app.screen, DetailsScreen))
            await pilot.press(closing)
            await until(pilot, lambda: not isinstance(app.screen, DetailsScreen))


async def test_the_line_in_focus_says_how_it_is_worked_out_also_in_a_small_window() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=(40, 10)) as pilot:
        await asked(pilot, *stories.whole_answer())
        await pilot.press("f5")
        await until(pilot, lambda: "Time from your Enter key to the" in screen_text(pilot))
        await pilot.press(*["down"] * 4)
        await until(pilot, lambda: "(Tokens - 1) / time from the first" in screen_text(pilot))
        assert "▸ writing" in screen_text(pilot)
        await pilot.press("end")
        await until(pilot, lambda: "▸ waits for the disk" in screen_text(pilot))
        await pilot.press("home")
        await until(pilot, lambda: "▸ first token" in screen_text(pilot))


async def test_it_follows_an_answer_that_runs() -> None:
    app = StagedApp(*stories.session_facts(), now_ms=2103)
    async with app.run_test(size=TALL) as pilot:
        await asked(pilot, *stories.prompt_facts()[:6])
        await pilot.press("f5")
        await until(pilot, lambda: "running" in screen_text(pilot))
        assert rows_by_group(screen_text(pilot))["where the time went"]["prefill"].startswith("1.10 s")
        app.now_ns = ms(11424.7)
        await play(pilot, stories.prompt_facts()[6], *stories.writing_facts(), stories.ended(11424.7))
        await until(pilot, lambda: "finished" in screen_text(pilot))
        assert rows_by_group(screen_text(pilot))["where the time went"]["decode"].startswith("8.11 s")


@pytest.mark.parametrize("key", ["f5", "f10"])
async def test_the_heading_names_the_question_of_the_answer_as_far_as_there_is_room(key: str) -> None:
    app = StagedApp(*stories.session_facts())
    questions = ("Tell me of rainbows", "And now explain how a moonbow forms at night, in three short sentences please")
    async with app.run_test(size=(160, 36)) as pilot:
        await ready(pilot)
        for number, question in enumerate(questions, start=1):
            app.chat_screen.prompt.text = question
            await pilot.press("enter")
            await until(pilot, lambda number=number: len(app.played.asked) == number)  # type: ignore[misc]
            await play(pilot, app.played.asked[-1], *stories.whole_answer(number)[1:])
        await pilot.press(key)
        await until(pilot, lambda: f"answer 2 of 2  “{questions[1]}”" in screen_text(pilot))
        await pilot.press("alt+left")
        await until(pilot, lambda: f"answer 1 of 2  “{questions[0]}”" in screen_text(pilot))
        await pilot.resize_terminal(80, 24)
        await pilot.press("alt+right")
        await until(pilot, lambda: "answer 2 of 2  “And now explain" in screen_text(pilot))
        assert screen_text(pilot).splitlines()[0].rstrip().endswith("finished")


async def test_earlier_answers_are_reached_inside_it_and_outside() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=(120, 36)) as pilot:
        await asked(pilot, *stories.whole_answer())
        await pilot.press("y", "enter")
        await until(pilot, lambda: len(app.played.asked) == 2)
        await play(pilot, *stories.prompt_facts(2), stories.tokens(0, [3314, 3324], answer_id=2))
        await play(pilot, stories.ended(3400, answer_id=2))
        assert "2 of 2 ‹" in screen_text(pilot)
        await pilot.press("alt+left")
        await until(pilot, lambda: "answer 1 of 2, Alt+Right for newer" in screen_text(pilot))
        assert "1 of 2   ›" in screen_text(pilot)
        assert "wrote  14.8 tok/s" in screen_text(pilot)
        await pilot.press("f5")
        await until(pilot, lambda: "answer 1 of 2" in screen_text(pilot) and "14.8 tok/s" in screen_text(pilot))
        await pilot.press("alt+right")
        await until(pilot, lambda: "answer 2 of 2" in screen_text(pilot) and "100 tok/s" in screen_text(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: "wrote  100 tok/s" in screen_text(pilot))


async def test_what_was_expected_stands_beside_what_happened() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=TALL) as pilot:
        facts = stories.whole_answer()
        expected = Expected(at_ns=ms(1003), answer_id=1, ttft_ns=ms(2545.62), decode_tps=14.8, basis="session")
        await asked(pilot, *facts[:5], expected, *facts[5:])
        await pilot.press("f5")
        await until(pilot, lambda: "what was expected before it began" in screen_text(pilot))
        shown = rows_by_group(screen_text(pilot))["what was expected before it began"]
        assert shown["first token"].startswith("2.55 s")
        assert shown["first token, off by"].startswith("+10.0 %")
        assert shown["writing"].startswith("14.8 tok/s")
        assert shown["writing, off by"].startswith(("+0.0 %", "-0.0 %"))
        await pilot.press("f10")
        await until(pilot, lambda: "off by +10 %" in screen_text(pilot))


async def test_an_answer_is_named_as_commands_name_it_where_its_chat_counts_otherwise() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=TALL) as pilot:
        await asked(pilot, *stories.whole_answer())
        await pilot.press("ctrl+n")
        for number in (2, 3):
            await pilot.press(*"more", "enter")
            await until(pilot, lambda number=number: len(app.played.asked) == number)  # type: ignore[misc]
            await play(pilot, app.played.asked[-1], *stories.whole_answer(number)[1:])
        await pilot.press("f5")
        await until(pilot, lambda: "answer 2 of 2 (number 3 in the session)" in screen_text(pilot))
        found = rows_by_group(screen_text(pilot))["to find it again"]
        assert found["number in the session"].startswith("3 ")
        assert "this session is not recorded" in found["its name for commands"]
        await pilot.press("f6")
        await until(pilot, lambda: "chat 2, answer 2 of 2 (number 3 in the session)" in screen_text(pilot))
        assert "chat 2, answer 1 of 2 (number 2 in the session)" in screen_text(pilot)
        await pilot.press("tab", "left", "left")
        await until(pilot, lambda: "chat 1, answer 1 of 1  “" in screen_text(pilot))


@pytest.mark.parametrize("record", ["full", "no-text", "off"])
async def test_a_recorded_answer_has_the_name_under_which_commands_find_it(
    record: Literal["full", "no-text", "off"], tmp_path: Path
) -> None:
    app = StagedApp(*stories.session_facts())
    app.records = Records(record, lambda _told: Library(tmp_path, tmp_path), lambda *_: None)  # type: ignore[arg-type]
    async with app.run_test(size=TALL) as pilot:
        await asked(pilot, *stories.whole_answer())
        await pilot.press("f5")
        await until(pilot, lambda: "to find it again" in screen_text(pilot))
        named = rows_by_group(screen_text(pilot))["to find it again"]["its name for commands"]
        assert named.startswith("n/a" if record == "off" else "s-1:1")
