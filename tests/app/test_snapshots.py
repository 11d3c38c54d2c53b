"""Pictures of the screen at three sizes of window, at moments that do not pass. Read the difference before updating."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from homeai.events import AnyFact, EngineEnded, Fault, Notice, Sample, StopRequested, Text
from tests.app.stage import StagedApp, play, ready, until
from tests.metrics import stories
from tests.metrics.stories import ms

SIZES = [(80, 24), (120, 36), (200, 50)]

MACHINE: list[AnyFact] = [
    *(
        Sample(
            at_ns=n,
            took_ns=1,
            probe="cpu",
            values={"machine_percent": percent, "program_percent_of_core": 3.1, "engine_percent_of_core": 196},
        )
        for n, percent in enumerate((12, 55, 98, 97, 99, 98))
    ),
    Sample(at_ns=9, took_ns=1, probe="memory", values={"used_bytes": 1.2 * 2**30, "total_bytes": 24 * 2**30}),
]

ANSWER = """\
The letter asks for **three things**:

1. **A new date** for the meeting, because the hall is not free on the 14th. They suggest the 21st instead.
2. The `budget.xlsx` file, [as agreed](https://example.org/minutes) in March:
   - the income side
   - the spending side
3. Your *signature*.

| item | who | until |
|---|---|---|
| new date | you | Friday |
| budget | Anna | next week |

```python
def reply(letter):
    return {"date": "21st", "signed": True}  # done
```

> Please do not forget the signature.
"""

Before = Callable[[Pilot[Any]], Awaitable[None]]


def after(*facts: AnyFact, keys: tuple[str, ...] = ("h", "i", "enter")) -> Before:
    async def run_before(pilot: Pilot[Any]) -> None:
        app = await ready(pilot)
        if "enter" in keys:
            app.chat_screen.prompt.text = "Summarise this letter for me: dear neighbours, …"
        await pilot.press(*(key for key in keys if len(key) > 1))
        await until(pilot, lambda: "enter" not in keys or app.played.asked)
        await play(pilot, *facts)
        await pilot.pause(0.15)

    return run_before


def answered() -> list[AnyFact]:
    pieces = [Text(at_ns=1, answer_id=1, channel="answer", text=ANSWER)]
    figures = [fact for fact in stories.writing_facts() if not isinstance(fact, Text)]
    return [*stories.prompt_facts(), *pieces, *figures, stories.ended(11424.7)]


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_a_prompt_being_read(snap_compare: Any, size: tuple[int, int]) -> None:
    app = StagedApp(*stories.session_facts(), *MACHINE, now_ms=2500)
    assert snap_compare(app, terminal_size=size, run_before=after(*stories.prompt_facts()[:6]))


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_a_finished_answer(snap_compare: Any, size: tuple[int, int]) -> None:
    app = StagedApp(*stories.session_facts(), *MACHINE)
    assert snap_compare(app, terminal_size=size, run_before=after(*answered()))


def test_the_first_look(snap_compare: Any) -> None:
    notice = Notice(at_ns=1, code="cpu_only", message="This build runs on the CPU only.", help="The README says more.")
    app = StagedApp(*stories.session_facts(), *MACHINE, notice)
    assert snap_compare(app, terminal_size=(120, 36), run_before=after(keys=()))


def test_an_answer_being_written_on_a_light_ground(snap_compare: Any) -> None:
    app = StagedApp(*stories.session_facts(), *MACHINE, now_ms=3700, theme="homeai-light")
    facts = [*stories.prompt_facts(), *stories.writing_facts()[:12]]
    assert snap_compare(app, terminal_size=(120, 36), run_before=after(*facts))


def test_a_stopped_answer(snap_compare: Any) -> None:
    facts = [*stories.prompt_facts()[:6], StopRequested(at_ns=ms(2163), answer_id=1), stories.ended(2203, "cancelled")]
    app = StagedApp(*stories.session_facts(), *MACHINE)
    assert snap_compare(app, terminal_size=(120, 36), run_before=after(*facts))


def test_a_dead_engine(snap_compare: Any) -> None:
    fault = Fault(code="engine_died", message="The engine was ended by signal 9.", help="Ask again to start it anew.")
    facts = [
        *stories.prompt_facts(),
        *stories.writing_facts()[:12],
        EngineEnded(at_ns=ms(3800), generation=1, fault=fault, signal=9, stderr_tail="CUDA error: out of memory"),
        stories.ended(3801, "error", fault=fault),
    ]
    app = StagedApp(*stories.session_facts(), *MACHINE)
    assert snap_compare(app, terminal_size=(80, 24), run_before=after(*facts))


def test_the_help(snap_compare: Any) -> None:
    app = StagedApp(*stories.session_facts(), *MACHINE)
    assert snap_compare(app, terminal_size=(80, 24), run_before=after(keys=("f1",)))


@pytest.mark.parametrize("size", [(80, 24), (120, 36)], ids=str)
def test_three_chats(snap_compare: Any, size: tuple[int, int]) -> None:
    async def run_before(pilot: Pilot[Any]) -> None:
        app = await ready(pilot)
        for number, question in enumerate(("Summarise this letter for me", "And in [b]German", "Why?"), start=1):
            if number > 1:
                await pilot.press("ctrl+n")
            app.chat_screen.prompt.text = question
            await pilot.press("enter")
            await until(pilot, lambda: not app.chat_screen.prompt.text)
            await play(pilot, *stories.prompt_facts(number))
        await play(pilot, *stories.writing_facts(1)[:12], *stories.writing_facts(2), stories.ended(11424, answer_id=2))
        await play(pilot, *stories.writing_facts(3)[:12])
        await pilot.pause(0.15)

    app = StagedApp(*stories.session_facts(), *MACHINE, now_ms=3700)
    assert snap_compare(app, terminal_size=size, run_before=run_before)


def test_a_narrow_window(snap_compare: Any) -> None:
    app = StagedApp(*stories.session_facts(), *MACHINE)
    assert snap_compare(app, terminal_size=(40, 20), run_before=after(*answered()))
