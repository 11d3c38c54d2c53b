"""What the next iteration computes: whose tokens, how many. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from homeai.engine.llamacpp.answer import Answer

ALONE_TARGET_NS = 250_000_000
"""How long a chunk of prompt may take on its own, where the machine is fast enough for more than one step in it."""

SHARED_TARGET_NS = 100_000_000
"""How long an iteration may take while another answer waits for its next token."""

SLOW_NS = 500_000_000
"""From here on the progress inside an iteration is told; on two cores a 7B model reads 512 tokens in over 20 s."""

ALONE_STEP = 512
"""A prompt that has the engine to itself is read in multiples of this. Smaller chunks read slower: on two cores with
the starter model 32/64/128/192 tokens reach 0.63/0.84/0.91/0.94 of the rate of 512, and 256 reach 0.97 to 1.00."""

SHARED_STEP = 32
"""The same while another answer writes: its gaps count for more than the prompt's rate."""


@dataclass(frozen=True, slots=True)
class Share:
    """The next `count` tokens of an answer's `todo`."""

    answer: Answer
    count: int


def plan(answers: Sequence[Answer], *, budget: int, decode_first: bool) -> list[Share]:
    """Choose up to `budget` tokens for one iteration.

    Answers that write have one token each to decode; the rest of the budget goes to prompts, those with least left to
    read first: a short question need not wait for a long letter. With `decode_first` off, prompts come first and
    writing answers get what is left of the budget.
    """
    writing = [Share(answer, 1) for answer in answers if len(answer.todo) == 1 and not answer.reading]
    reading = [answer for answer in answers if answer.todo and (answer.reading or len(answer.todo) > 1)]
    reading.sort(key=lambda answer: len(answer.todo))
    if decode_first or not reading:
        shares = writing[:budget]
        shares += _chunks(reading, budget - len(shares))
    else:
        shares = _chunks(reading, budget)
        left = budget - sum(share.count for share in shares)
        shares += writing[: max(left, 0)]
    return shares


def _chunks(reading: Sequence[Answer], budget: int) -> list[Share]:
    shares = []
    for answer in reading:
        if budget <= 0:
            break
        count = min(len(answer.todo), budget)
        shares.append(Share(answer, count))
        budget -= count
    return shares


class Budget:
    """How many tokens an iteration may hold, learned from how fast the last ones went."""

    def __init__(self, *, fixed: int, largest: int, stoppable: bool = True) -> None:
        """`fixed` 0 learns; `stoppable`: a running iteration can be broken off, so that it may be a long one."""
        self._fixed = fixed
        self._largest = largest
        self._stoppable = stoppable
        self._next = ALONE_STEP
        self._per_token_ns: float | None = None

    def tokens(self, *, shared: bool) -> int:
        """The budget of the next iteration; never more than the batch holds."""
        if self._fixed:
            return min(self._fixed, self._largest)
        short = shared or not self._stoppable
        step, target_ns = (SHARED_STEP, SHARED_TARGET_NS) if short else (ALONE_STEP, ALONE_TARGET_NS)
        if self._per_token_ns is None:
            return min(step, self._largest)
        fitting = int(target_ns / self._per_token_ns) // step * step
        return min(max(fitting, step), self._next, self._largest)

    def is_slow(self, tokens: int) -> bool:
        """Whether an iteration of so many tokens will take long enough for its progress to be told from inside."""
        return tokens >= SHARED_STEP and (self._per_token_ns is None or tokens * self._per_token_ns > SLOW_NS)

    def learn(self, tokens: int, took_ns: int) -> None:
        """Take in how long an iteration of this many tokens computed. Small ones say little about large ones."""
        if tokens < SHARED_STEP:
            return
        self._per_token_ns = max(took_ns, 1) / tokens
        # The speed of a small chunk says little about one many times its size, so growth is bounded.
        self._next = max(tokens * 4, ALONE_STEP)
