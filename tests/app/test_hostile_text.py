"""Text that wants to be markup or a command to the terminal, through every place that shows foreign text."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from homeai.events import EngineEnded, Fault, Notice, Text
from tests.app.stage import StagedApp, play, ready, screen_text
from tests.metrics import stories
from tests.metrics.stories import ms
from widgets.foreign import shown

HOSTILE = [
    "[/red]",
    "[/",
    "[bold",
    "[a=b:",
    "\\[",
    "([sys:L=x…])",
    "[@click=app.quit]x[/]",
    "q[/]4.gguf",
    "$primary ${x} {}",
    "\x1b[2J",
    "\x1b]0;title\x07",
    "\x1b]52;c;aGk=\x07",
    "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\",
    "\x1bc",
    "\x9b31m",
    "\x08" * 20,
    "a\rb",
    "\u202eright to left",
    "👩‍🚒 🏳️‍🌈 👍🏽 ✌️ é 表 ｶﾞ",
    "تم فتح Chrome 12 ms",
    "x\ud83d",
    "\udc81",
    "\x00\x7f\x85",
    "line\u2028break",
]


def is_inert(text: str) -> bool:
    """Whether nothing in the text can act on a terminal."""
    return not any(
        unicodedata.category(character) in ("Cc", "Cs") or character in "\u202e\u200d\ufe0f"
        for character in text.replace("\n", "")
    )


async def play_everywhere(hostile: str) -> str:
    """Show the text in every place and return what the screen held in each state."""
    model = stories.LOAD_ENDED
    engine = type(model.engine)(backend=hostile, build=hostile, threads=2, context=4096)
    facts = type(model.model)(name=hostile, path=hostile, size_bytes=1, quant=hostile)
    loaded = type(model)(
        at_ns=model.at_ns,
        load_id=1,
        file_ns=1,
        context_ns=1,
        warmup_ns=1,
        page_cache="warm",
        model=facts,
        engine=engine,
    )
    fault = Fault(code="engine_died", message=hostile, help=hostile)
    app = StagedApp(*stories.session_facts()[:-1], loaded, now_ms=5000)
    pictures = []
    async with app.run_test(size=(120, 50), notifications=True) as pilot:
        await ready(pilot)
        app.chat_screen.prompt.text = f"Q {shown(hostile)}"
        await pilot.pause()
        pictures.append(screen_text(pilot))
        app.chat_screen.conversation.ask(hostile)
        app.chat_screen.prompt.text = hostile.encode("utf-8", "replace").decode()
        await pilot.press("enter")
        pieces = [
            Text(at_ns=1, answer_id=1, channel="reasoning", text=hostile),
            Text(at_ns=1, answer_id=1, channel="answer", text=f"A {hostile}\n\n# {hostile}\n\n- {hostile}\n\n"),
            Text(at_ns=1, answer_id=1, channel="answer", text=f"| {hostile} | b |\n|---|---|\n| c | {hostile} |\n\n"),
            Text(
                at_ns=1,
                answer_id=1,
                channel="answer",
                text=f"```{hostile}\n{hostile}\n```\n[{hostile}]({hostile}) `{hostile}`",
            ),
        ]
        await play(pilot, *stories.prompt_facts(), *pieces, Notice(at_ns=1, code="x", message=hostile, help=hostile))
        pictures.append(screen_text(pilot))
        await play(
            pilot,
            EngineEnded(at_ns=ms(4000), generation=1, fault=fault, stderr_tail=hostile),
            stories.ended(4001, "error", fault=fault),
        )
        await pilot.press("ctrl+t")
        await pilot.pause()
        pictures.append(screen_text(pilot))
        await play(pilot, replace(stories.submitted(4100, answer_id=2), prompt=hostile))
        app.desk.current.begin(2, hostile)
        for key in ("f5", "end", "f6"):  # the pages of figures
            await pilot.press(key)
            await pilot.pause(0.05)
            pictures.append(screen_text(pilot))
        app.export_screenshot()
    assert app.crash is None
    return "\n".join(pictures)


@pytest.mark.parametrize("hostile", HOSTILE, ids=ascii)
async def test_it_is_shown_as_the_text_it_is(hostile: str) -> None:
    seen = await play_everywhere(hostile)
    assert is_inert(seen)
    visible = " ".join(shown(hostile).split())
    if "\n" not in shown(hostile) and "\\" not in hostile:
        # At least the question, the answer, the code, the remark and the alert.
        assert seen.count(visible) >= 5, visible


@given(st.text(st.characters(), max_size=30) | st.text("[]/\\$@=:`*_~|#>-{}\x1b\x9b\n ", max_size=30))
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
async def test_no_text_at_all_breaks_the_screen(hostile: str) -> None:
    assert is_inert(await play_everywhere(hostile))
