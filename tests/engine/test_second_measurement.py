"""The rates as reported, against a second measurement that shares no code with them.

Decode: the times at which the answer's text arrives in the parent process, on the test's own clock. Prefill: a bare
loop on llama.cpp over the same tokens. Other programs disturb single tries, so up to five are made; one has to agree
within 3 %.
"""

from __future__ import annotations

import random
import time
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import pytest

from homeai.events import AnyFact, LoadEnded, Sampler, Text
from homeai.metrics.contract import contract
from homeai.models.modelfile import examine
from homeai.session import Session
from tests.benchmarks.bare import BareLoop
from tests.engine.recorder import Recorder
from tests.engine.rig import options, starter

pytestmark = pytest.mark.model

THREADS = 1
"""It is the measuring that is tested: two threads that wait for each other would multiply every disturbance."""
TRIES = 12
READS = 5
"""Prompts a try; short, so that some are read while nothing else runs."""
WITHIN = 0.03
TOKENS = 256
SYSTEM = "You write long stories."


class Listener(Recorder):
    """Notes when each piece of text arrives, on a clock that the program does not use."""

    def __init__(self) -> None:
        super().__init__()
        self.arrivals: list[tuple[float, str]] = []

    def __call__(self, fact: AnyFact) -> None:
        if isinstance(fact, Text):
            self.arrivals.append((time.perf_counter(), fact.text))
        super().__call__(fact)


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def session(listener: Listener) -> Iterator[Session]:
    made = Session(options=options(threads=THREADS, threads_batch=THREADS), on_fact=listener)
    made.use_model(examine(starter()))
    listener.wait_for(LoadEnded)
    yield made
    made.close()


@pytest.fixture
def bare() -> Iterator[BareLoop]:
    loop = BareLoop(str(starter()), context=4096, threads=THREADS)
    yield loop
    loop.close()


def story(seed: int) -> str:
    """About 200 tokens, one chunk, different from the system text on, so that next to nothing is reused."""
    words = ["river", "mill", "stone", "letter", "garden", "winter", "lamp", "bridge", "song", "harbour"]
    chosen = random.Random(seed)
    text = " ".join(chosen.choice(words) for _ in range(150))
    return f"{text}\nWrite a very long story with these words and go on for many pages."


def whole(prompt: str) -> str:
    return f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n"


def arrival_rate(arrivals: list[tuple[float, str]], pieces: list[bytes]) -> float:
    """Tokens a second between the middles of five early and five late arrivals.

    Averaged, what bundling holds back (33 ms at most) does not count; the very first and last are not held back at all
    and left out. A pause counts as much as in a rate from the first token to the last, which it would not in the slope
    of a line through all arrivals.
    """
    ends = list(accumulate(len(piece) for piece in pieces))
    characters = accumulate(len(text.encode()) for _, text in arrivals)
    indexes = [bisect_right(ends, count) for count in characters]
    times = [at for at, _ in arrivals]
    return (sum(indexes[-6:-1]) - sum(indexes[1:6])) / (sum(times[-6:-1]) - sum(times[1:6]))


def test_a_steady_stream_arrives_at_its_rate_however_it_is_bundled() -> None:
    pieces = [b"word"] * 200
    arrivals = [(0.02 * first + 0.04, "word" * 4) for first in range(0, 200, 4)]
    assert arrival_rate(arrivals, pieces) == pytest.approx(50)


def test_reported_rates_agree_with_a_second_measurement(session: Session, listener: Listener, bare: BareLoop) -> None:
    decode_ratios: list[float] = []
    ours: list[float] = []
    theirs: list[float] = []

    def agreed() -> bool:
        return any(abs(ratio - 1) <= WITHIN for ratio in decode_ratios) and abs(max(ours) / max(theirs) - 1) <= WITHIN

    def answer(prompt: str, tokens: int) -> dict[str, Any]:
        listener.arrivals.clear()
        chat = session.open_chat(SYSTEM)
        answer_id = session.ask(chat, prompt, sampler=Sampler(temperature=0.0, max_tokens=tokens))
        assert session.wait(answer_id, 600)
        told = contract(session.state, answer_id)
        assert told["tokens"]["prompt"] == len(bare.tokenise(whole(prompt)))
        assert told["tokens"]["reused"] < 32
        ours.append(told["rates"]["prefill_tps"])
        return told

    def write(prompt: str) -> None:
        told = answer(prompt, TOKENS)
        pieces = [bare.piece(token) for token in bare.tokenise(told["answer"])]
        # Tokenised again, a text may come out shorter; then it tells nothing about the tokens as they were written.
        if told["tokens"]["output"] >= 128 and told["tokens"]["output"] - len(pieces) in (0, 1):
            decode_ratios.append(told["rates"]["decode_tps"] / arrival_rate(listener.arrivals, pieces))

    def read_barely(prompt: str) -> None:
        ids = bare.tokenise(whole(prompt))
        theirs.append(len(ids) / bare.run(ids, 1).prefill_s)

    for attempt in range(TRIES):
        write(story(attempt))
        for read in range(READS):
            prompt = story(100 * attempt + read + TRIES)
            read_barely(prompt)
            answer(prompt, 1)
        if agreed():
            break
    print(f"\ndecode, reported / arrivals: {decode_ratios}; prefill, reported {ours}, bare loop {theirs}")
    assert agreed()
