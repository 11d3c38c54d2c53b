"""Where a prompt parts from the cache, and why: by hand, and with a real model."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeai.clock import now_ns
from homeai.engine.llamacpp.divergence import Held, divergence
from homeai.engine.wire import Ask
from homeai.events import Divergence, Message, Prefilled, SlowStep, Tokenised
from tests.engine.rig import GREEDY, Rig
from tests.models.tiny import write_chat_model


def said(*texts: str, system: str | None = None, ids: dict[int, int] | None = None) -> tuple[Message, ...]:
    """User and assistant in turns; `ids` names the answers that assistant messages came from, by their place."""
    messages = [] if system is None else [Message(role="system", content=system)]
    for index, text in enumerate(texts):
        role = "assistant" if index % 2 else "user"
        messages.append(Message(role=role, content=text, answer_id=(ids or {}).get(index)))  # type: ignore[arg-type]
    return tuple(messages)


HELD = Held(messages=said("a", "b", "c", system="s"), answer_id=7, tokens=100, reasoned=False)


def parting(messages: tuple[Message, ...], held: Held = HELD, **changes: object) -> Divergence | None:
    arguments: dict[str, object] = {"at": 40, "prompt": 120, "evicted": False, "rolls_back": True}
    return divergence(held, messages, **(arguments | changes))  # type: ignore[arg-type]


def test_a_chat_that_goes_on_loses_nothing() -> None:
    assert parting(said("a", "b", "c", "d", "e", system="s", ids={3: 7}), at=100) is None


def test_a_question_asked_once_more_loses_nothing() -> None:
    assert parting(HELD.messages, at=60, prompt=61) is None


@pytest.mark.parametrize(
    ("messages", "why", "message", "role"),
    [
        (said("A", "b", "c", "d", "e", system="s", ids={3: 7}), "edited", 1, "user"),
        (said("a", "B", "c", "d", "e", system="s", ids={3: 7}), "regenerated", 2, "assistant"),
        (said("a", "b", "c", "d", "e", system="s", ids={3: 9}), "regenerated", 4, "assistant"),
        (said("a", "b", "c", "d", "e", system="S", ids={3: 7}), "system_changed", 0, "system"),
        (said("a", "b", "c", "d", "e", ids={3: 7}), "system_changed", 0, "user"),
        (said("c", "d", "e", system="s", ids={1: 7}), "trimmed", 1, "user"),
        (said("a", "b", "c", "d", "e", system="s", ids={3: 7}), "retokenised", 4, "assistant"),
    ],
)
def test_why(messages: tuple[Message, ...], why: str, message: int, role: str) -> None:
    found = parting(messages)
    assert found is not None
    assert (found.why, found.message, found.role, found.at, found.held) == (why, message, role, 40, 100)


def test_reasoning_that_a_template_drops() -> None:
    held = Held(messages=HELD.messages, answer_id=7, tokens=100, reasoned=True)
    found = parting(said("a", "b", "c", "d", "e", system="s", ids={3: 7}), held)
    assert found is not None
    assert found.why == "reasoning_dropped"


def test_a_model_that_cannot_roll_back() -> None:
    found = parting(said("a", "b", "c", "d", "e", system="s", ids={3: 7}), rolls_back=False)
    assert found is not None
    assert found.why == "cannot_roll_back"
    again = parting(HELD.messages, at=40, prompt=61, rolls_back=False)
    assert again is not None
    assert again.why == "cannot_roll_back"


def test_a_chat_whose_place_another_took() -> None:
    found = parting(said("a", "b", "c", "d", "e", system="s", ids={3: 7}), evicted=True, at=3)
    assert found == Divergence(at=3, held=100, why="evicted")


# --- a real model -----------------------------------------------------------------------------------------------------


@pytest.fixture
def tiny(tmp_path: Path) -> Rig:
    rig = Rig()
    rig.load(write_chat_model(tmp_path / "tiny.gguf"))
    return rig


def ask(rig: Rig, messages: tuple[Message, ...], answer_id: int, chat_id: int = 1) -> Tokenised:
    rig.backend.ask(Ask(answer_id=answer_id, chat_id=chat_id, messages=messages, sampler=GREEDY), now_ns())
    rig.run()
    return rig.one(Tokenised, answer_id)


LONG = "Once there was a house by the river, and in it lived an old woman with her cat. " * 4


def test_a_second_turn_and_an_edit_of_the_first(tiny: Rig) -> None:
    first = ask(tiny, said(LONG), 1)
    assert first.divergence is None
    answer = tiny.text(1)
    second = ask(tiny, said(LONG, answer, "Go on."), 2)
    # The last token of an answer was sampled and never read.
    assert second.reused == second.cached > first.prompt
    assert second.divergence is None
    # The second answer is not in this one: its first message differs in an early word.
    third = ask(tiny, said(LONG.replace("there", "where", 1), answer, "Go on."), 3)
    assert third.divergence is not None
    assert (third.divergence.why, third.divergence.message, third.divergence.role) == ("edited", 0, "user")
    assert third.divergence.at == third.reused < 40
    assert third.divergence.held == third.cached
    tiny.close()


def test_two_chats_in_one_place(tiny: Rig) -> None:
    ask(tiny, said(LONG), 1, chat_id=1)
    other = ask(tiny, said("Something else entirely, and rather short."), 2, chat_id=2)
    assert other.divergence is None
    back = ask(tiny, said(LONG, tiny.text(1), "Go on."), 3, chat_id=1)
    assert back.divergence is not None
    assert back.divergence.why == "evicted"
    tiny.close()


def test_a_token_that_comes_late_is_told_with_what_happened(tiny: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    context = tiny.backend.context
    real, calls = context.decode, 0

    def slow_once() -> int:
        nonlocal calls
        calls += 1
        if calls == 20:
            import time

            time.sleep(1)
        return real()

    monkeypatch.setattr(context, "decode", slow_once)
    tiny.answer("Hello")
    late = [fact for fact in tiny.of(SlowStep) if fact.took_ns > 1_000_000_000]
    assert len(late) == 1
    # The first call read the prompt, the second computed token 1.
    assert late[0].token == 19
    assert late[0].usual_ns < 300_000_000
    # It slept, and at most the other thread waited busily; no page came from the disk, nobody else was served.
    assert late[0].cpu_ns is not None
    assert late[0].cpu_ns < 1.2 * late[0].took_ns
    assert late[0].other_tokens == 0
    assert late[0].context_used > 19
    tiny.close()


def test_the_processor_time_of_prompt_and_answer_is_told(tiny: Rig) -> None:
    answer_id = tiny.answer(LONG)
    chunks = tiny.of(Prefilled, answer_id)
    assert all(chunk.cpu_ns is not None and chunk.cpu_ns > 0 for chunk in chunks)
    ended = tiny.ended(answer_id)
    stamps = tiny.stamps(answer_id)
    assert ended.cpu_ns is not None
    # Two threads cannot use more than two cores' time; the pipe's threads do not run here.
    assert 0 < ended.cpu_ns < 2.5 * (stamps[-1] - stamps[0]) + 20_000_000
    tiny.close()
