"""The explanation in the lines that a panel, a strip and a page have for it."""

from __future__ import annotations

import pytest
from textual.content import Content

from homeai.events import Expected
from homeai.explain import explain
from homeai.explain.brief import Brief, brief
from homeai.metrics.fold import fold_all
from tests.explain.scenes import ID, TWO_CORES, engine, session
from tests.metrics import stories
from tests.metrics.stories import ms
from widgets.why import why_line, why_lines
from widgets.why_page import calibration_words, why_page

WHOLE = fold_all(stories.whole_session())
FINISHED = brief(WHOLE.answers[1], explain(WHOLE, 1))
BAD = Brief(
    wait="Waited for reading 604 new prompt tokens at 261 tok/s.",
    stream="Written at 14.8 tok/s: 8 threads share 2 cores.",
    alarm="8 threads share 2 cores, about 3.10 s.",
    help="--threads 2 uses each core once.",
    contrast="A pass reads many tokens but writes one.",
    short="8 threads share 2 cores, about 3.10 s",
)


def texts(lines: list[Content]) -> list[str]:
    return [line.plain.rstrip() for line in lines]


@pytest.mark.parametrize("rows", range(6))
@pytest.mark.parametrize("width", [20, 46, 56, 80])
@pytest.mark.parametrize("told", [None, Brief(), FINISHED, BAD], ids=("none", "empty", "finished", "bad"))
def test_it_keeps_its_room(told: Brief | None, width: int, rows: int) -> None:
    lines = why_lines(told, width, rows)
    assert len(lines) == rows
    assert all(line.cell_length <= width for line in lines)


def test_what_matters_most_stands_first_and_what_has_no_room_is_left_out() -> None:
    assert texts(why_lines(FINISHED, 56, 4)) == [
        "Waited for reading 604 new prompt tokens at 261 tok/s.",
        "Written at 14.8 tok/s, a pass over the model for each.",
        "A pass reads many tokens but writes one: fast reading, a",
        "long wait and slow writing are no contradiction.",
    ]
    assert texts(why_lines(FINISHED, 56, 3))[2] == FINISHED.contrast_short
    assert texts(why_lines(BAD, 56, 3)) == [f"! {BAD.alarm}", BAD.wait, BAD.stream]
    assert texts(why_lines(BAD, 56, 5))[3:] == [BAD.help, BAD.contrast]
    # Every one of the first three has its line, cut short where it has to be.
    assert [line[:8] for line in texts(why_lines(BAD, 24, 3))] == ["! 8 thre", "Waited f", "Written "]
    assert texts(why_lines(BAD, 24, 3))[1].endswith("…")


def test_one_line_gives_way_to_what_stands_at_its_end() -> None:
    right = Content("CPU  98 %  F10 why")
    assert why_line(FINISHED, 76, right).plain == (
        "why: 604 new tokens to read; written one by one           CPU  98 %  F10 why"
    )
    assert why_line(BAD, 60, right).plain.startswith("why: ! 8 threads share 2 cores")
    assert why_line(BAD, 40, right).cell_length == 40


def page(width: int = 100, **changes: object) -> list[str]:
    state = session(**changes)  # type: ignore[arg-type]
    answer = state.answers[ID]
    return texts(why_page(answer, explain(state, ID), state.ceilings.get("/models/m.gguf"), width))


def test_the_page_has_both_lists_their_sums_what_helps_and_what_the_rule_is_about() -> None:
    lines = page(prompt=604, prefill_ms=2310, gaps_ms=(30.0,) * 63, facts=engine(threads=8), ceilings=TWO_CORES)
    shown = "\n".join(lines)
    titles = [line.strip("─ ") for line in lines if line.startswith("─ ")]
    assert titles[:3] == ["the time to the first token", "what the wait was", "what limits the writing"]
    at = next(y for y, line in enumerate(lines) if "had to be read before the first word" in line)
    assert lines[at].startswith("· 604 new prompt tokens")
    alarm = next(line for line in lines if line.startswith("! "))
    assert "8 threads on 2 cores" in alarm
    assert "an alarm: something is wrong" in shown
    assert "What helps: --threads 2" in shown
    assert "More threads than cores take turns and wait for each other." in shown


def test_the_parts_of_the_wait_add_up_on_the_page() -> None:
    lines = texts(why_page(WHOLE.answers[1], explain(WHOLE, 1), None, 100))
    start = lines.index(next(line for line in lines if line.startswith("─ the time to the first token")))
    end = lines.index(next(line for line in lines[start:] if "together" in line))
    spans = [line.split()[-2:] for line in lines[start + 1 : end - 1]]
    in_ms = [float(number) * (1000 if unit == "s" else 1) for number, unit in spans]
    assert sum(in_ms) == pytest.approx(2314.2, abs=5)
    assert lines[end].split() == ["together", "2.31", "s"]


def test_the_page_says_what_was_expected_and_by_how_much_that_was_wrong() -> None:
    facts = stories.whole_session()
    expected = Expected(at_ns=ms(1003), answer_id=1, ttft_ns=ms(2545.62), decode_tps=7.4, basis="session")
    state = fold_all([*facts[:10], expected, *facts[10:]])
    lines = texts(why_page(state.answers[1], explain(state, 1), None, 100))
    assert "  first token: expected 2.55 s, from earlier answers; it was 2.31 s, off by +10 %" in [
        f"  {line.strip()}" for line in lines
    ]
    assert any("writing: expected 7.40 tok/s" in line and "off by -50 %" in line for line in lines)
    without = texts(why_page(WHOLE.answers[1], explain(WHOLE, 1), None, 100))
    assert any(line.startswith("Nothing: too little was known") for line in without)


def test_the_page_says_how_it_compares_with_what_feels_fast_and_whether_the_machine_was_measured() -> None:
    shown = " ".join(page(prompt=604, prefill_ms=2310, gaps_ms=(66.0,) * 63))
    assert "feels immediate. Here 2.31 s: a wait." in shown
    assert "Here 15.2 tok/s: comfortable." in shown
    assert "homeai calibrate does that in about 30 s" in shown
    assert "Here 6.67 tok/s: slower than people read." in " ".join(page(gaps_ms=(150.0,) * 63))
    assert "Here 125 tok/s: it flows." in " ".join(page(gaps_ms=(8.0,) * 63))
    apart = calibration_words(TWO_CORES, outdated="It was measured with 33 layers on the GPU.", compared=False)
    assert apart.startswith("Not compared with what this machine was measured to do")
    assert "33 layers on the GPU. In another terminal, homeai calibrate measures anew." in apart
    assert calibration_words(TWO_CORES).startswith("Compared with what this machine was measured to do")
    assert calibration_words(TWO_CORES, recorded=True).startswith("Compared with what the machine of this record was")
    assert calibration_words(None, recorded=True).startswith("The machine of this record was not measured")


@pytest.mark.parametrize("width", [0, 36, 46, 76, 196])
def test_the_page_fits_every_width(width: int) -> None:
    for state, answer_id in ((WHOLE, 1), (session(ceilings=TWO_CORES, facts=engine(threads=8)), ID)):
        found = explain(state, answer_id)
        lines = why_page(state.answers[answer_id], found, TWO_CORES, width)
        assert all(line.cell_length <= max(38, width) for line in lines)
