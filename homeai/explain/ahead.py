"""What a question that is still being typed would cost: its new tokens, and the wait for the first one. Pure.

The engine alone knows how many tokens a text is. This goes by the characters a token of this session's own answers had,
and by what earlier questions took beyond their own words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from homeai.explain.predict import predict
from homeai.metrics.quantities.decode_tps import TOKENS_MIN
from homeai.metrics.state import AnswerState, SessionState

CHARACTERS_A_TOKEN = 4.2
"""Of English text, before this session has answers of its own to go by."""
FIRST_EXTRA, NEXT_EXTRA = 30.0, 12.0
"""Tokens of a template around the first question of a chat, with the usual system text, and around a later one."""
BEHIND_QUESTION = 6
"""Of those the ones that follow the question: they end it and open the answer."""
RECENT = 8


@dataclass(frozen=True, slots=True)
class Ratios:
    """What this session's answers tell of how text becomes tokens."""

    characters_a_token: float = CHARACTERS_A_TOKEN
    first_extra: float = FIRST_EXTRA
    next_extra: float = NEXT_EXTRA


@dataclass(frozen=True, slots=True)
class Ahead:
    """About what a question would take."""

    new_tokens: int
    reused_tokens: int
    wait_ns: int | None
    """Until the first token; None where another answer has the engine, or no rate is known yet."""
    context: int | None
    """What the model can see at once; less than all these tokens is too little."""


def ratios(state: SessionState) -> Ratios:
    """Work them out; takes longer the longer the answers are, so once an answer and not once a key."""
    ended = [answer for answer in state.answers.values() if answer.ended is not None and answer.tokenised is not None]
    characters = tokens = 0
    for answer in [answer for answer in ended if answer.tokens.count >= TOKENS_MIN][-RECENT:]:
        characters += len(answer.answer_text) + len(answer.reasoning_text)
        tokens += answer.tokens.count
    each = characters / tokens if characters and tokens else CHARACTERS_A_TOKEN
    first, later = [], []
    before: dict[int, AnswerState] = {}
    for answer in ended:
        if answer.submitted is None or answer.tokenised is None:
            continue
        asked, chat_id = answer.submitted, answer.submitted.chat_id
        earlier, before[chat_id] = before.get(chat_id), answer
        if earlier is None:
            words = len(asked.prompt) + len(asked.system or "")
            first.append(answer.tokenised.prompt - words / each)
        elif asked.replaces is None and not earlier.tokens.reasoning:
            later.append(answer.tokenised.prompt - _whole(earlier) - len(asked.prompt) / each)
    return Ratios(each, _typical(first, FIRST_EXTRA), _typical(later, NEXT_EXTRA))


def ahead(
    state: SessionState, known: Ratios, answer_ids: Sequence[int], characters: int, *, system: str | None = None
) -> Ahead | None:
    """Estimate a chat's next question; None where nothing is known of this machine's rates with this model.

    Args:
        state: The session so far.
        known: How text becomes tokens in it.
        answer_ids: The chat's answers, those before the question's own place only.
        characters: How long the question is.
        system: The chat's system text.
    """
    loaded = state.load.loaded
    if loaded is None or not state.load.resident:
        return None
    standing = [state.answers[answer_id] for answer_id in _standing(state, answer_ids)]
    last = next((answer for answer in reversed(standing) if answer.tokenised is not None), None)
    own = characters / known.characters_a_token
    if last is None:
        before, reused = 0, 0
        own += known.first_extra + len(system or "") / known.characters_a_token
    else:
        own += known.next_extra
        before, reused = _whole(last) - last.tokens.reasoning, _kept(state, last)
        if (longer := _longer_system(last, system)) is not None:
            own, reused = own + longer / known.characters_a_token, 0
    return _with_wait(state, round(before - reused + own), reused)


def changed(
    state: SessionState, known: Ratios, answer_id: int, text: str, *, system: str | None = None
) -> Ahead | None:
    """Estimate the question of an answer asked anew with other words; None where nothing is known of the rates.

    What stands before its first changed character is in the cache still, as far as that was not emptied meanwhile.
    """
    loaded, answer = state.load.loaded, state.answers.get(answer_id)
    if loaded is None or not state.load.resident or answer is None:
        return None
    if answer.submitted is None or answer.tokenised is None or answer.ended is None:
        return None
    before, held = answer.submitted.prompt, _kept(state, answer)
    alike = next((at for at, pair in enumerate(zip(before, text, strict=False)) if pair[0] != pair[1]), None)
    same = min(len(before), len(text)) if alike is None else alike
    whole = answer.tokenised.prompt + (len(text) - len(before)) / known.characters_a_token
    same_tokens = answer.tokenised.prompt - BEHIND_QUESTION - (len(before) - same) / known.characters_a_token
    reused = max(0, min(held, round(same_tokens))) if loaded.ended.model.rolls_back else 0
    if (longer := _longer_system(answer, system)) is not None:
        whole, reused = whole + longer / known.characters_a_token, 0
    return _with_wait(state, max(1, round(whole) - reused), reused)


def _with_wait(state: SessionState, new: int, reused: int) -> Ahead | None:
    found, loaded = predict(state, new_tokens=new, reused_tokens=reused), state.load.loaded
    if found is None or loaded is None:
        return None
    busy = any(answer.ended is None for answer in state.answers.values())
    return Ahead(new, reused, None if busy else found.prefill_ns, loaded.ended.engine.context)


def _longer_system(answer: AnswerState, system: str | None) -> int | None:
    """By how many characters a chat's system text is longer than that of an answer; None where it is the same.

    It stands before everything else: with another one the whole chat is read anew.
    """
    before = (answer.submitted.system if answer.submitted is not None else system) or ""
    return None if before == (system or "") else len(system or "") - len(before)


def _standing(state: SessionState, answer_ids: Sequence[int]) -> Iterator[int]:
    """Those that no other took the place of."""
    known = [answer_id for answer_id in answer_ids if answer_id in state.answers]
    replaced = {asked.replaces for answer_id in known if (asked := state.answers[answer_id].submitted) is not None}
    return (answer_id for answer_id in known if answer_id not in replaced)


def _whole(answer: AnswerState) -> int:
    """The tokens of a chat up to the end of this answer."""
    return (answer.tokenised.prompt if answer.tokenised is not None else 0) + answer.tokens.count


def _kept(state: SessionState, last: AnswerState) -> int:
    """What of the chat the cache should still hold for the next question."""
    loaded = state.load.loaded
    if last.load is not loaded or loaded is None or last.ended is None or last.tokenised is None:
        return 0
    held = _whole(last) if last.ended.context_used is None else min(last.ended.context_used, _whole(last))
    if not last.tokens.reasoning:
        return held
    # Templates leave out what a model thought before its earlier answers: from there on all is read again.
    return min(held, last.tokenised.prompt) if loaded.ended.model.rolls_back else 0


def _typical(found: Sequence[float], otherwise: float) -> float:
    return max(1.0, median(found[-RECENT:])) if found else otherwise
