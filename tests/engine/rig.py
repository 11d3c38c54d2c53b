"""The llama.cpp backend inside the test process: load a model, ask, step, and look at every fact."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from homeai.clock import now_ns
from homeai.engine.llamacpp.engine import LlamaCppBackend
from homeai.engine.wire import Ask, Load
from homeai.events import AnyFact, Ended, Message, Prefilled, Sampler, Text, Tokens
from homeai.models.starter import find_starter
from homeai.options import EngineOptions

GREEDY = Sampler(temperature=0.0, max_tokens=32)

F = TypeVar("F")


def options(**changes: Any) -> EngineOptions:
    """Engine options that run anywhere; keyword arguments replace single ones."""
    values: dict[str, Any] = {
        "gpu_layers": 0,
        "threads": 2,
        "threads_batch": 2,
        "batch": 2048,
        "ubatch": 512,
        "flash_attention": None,
        "kv_type_k": "f16",
        "kv_type_v": "f16",
        "context": 4096,
        "sequences": 1,
    }
    return EngineOptions(**(values | changes))


def load_request(path: Path, *, load_id: int = 1, **changes: Any) -> Load:
    return Load(
        load_id=load_id,
        path=str(path),
        files=(os.fsencode(path),),
        name=path.stem,
        size_bytes=path.stat().st_size,
        options=options(**changes),
    )


def user(*texts: str) -> tuple[Message, ...]:
    """A chat of user and assistant messages in turn."""
    roles = ("user", "assistant")
    return tuple(Message(role=roles[index % 2], content=text) for index, text in enumerate(texts))  # type: ignore[arg-type]


def starter() -> Path:
    path = find_starter()
    assert path is not None, "the starter model's package is part of the test set-up"
    return path


class Rig:
    """One backend and what it emitted."""

    def __init__(self) -> None:
        self.facts: list[AnyFact] = []
        self.listener: Callable[[AnyFact], None] | None = None
        self.backend = LlamaCppBackend(self._hear)
        self._next = 1

    def _hear(self, fact: AnyFact) -> None:
        self.facts.append(fact)
        if self.listener is not None:
            self.listener(fact)

    def load(self, path: Path, **changes: Any) -> None:
        self.backend.load(load_request(path, **changes))

    def ask(self, messages: tuple[Message, ...] | str, sampler: Sampler = GREEDY, chat_id: int = 1) -> int:
        """Hand in a request; it is worked on by `run` or by `step`."""
        answer_id = self._next
        self._next += 1
        chat = user(messages) if isinstance(messages, str) else messages
        self.backend.ask(Ask(answer_id=answer_id, chat_id=chat_id, messages=chat, sampler=sampler), now_ns())
        return answer_id

    def run(self, limit: int = 100_000) -> None:
        """Step until nothing is left to do."""
        for _ in range(limit):
            if not self.backend.busy:
                return
            self.backend.step()
        raise AssertionError(f"still busy after {limit} steps")

    def answer(self, messages: tuple[Message, ...] | str, sampler: Sampler = GREEDY, chat_id: int = 1) -> int:
        answer_id = self.ask(messages, sampler, chat_id)
        self.run()
        return answer_id

    def step_until(self, answer_id: int, tokens: int) -> None:
        """Step until this answer has sampled so many tokens."""
        while len(self.ids(answer_id)) < tokens:
            assert self.backend.busy
            self.backend.step()

    def of(self, kind: type[F], answer_id: int | None = None) -> list[F]:
        return [
            fact
            for fact in self.facts
            if isinstance(fact, kind) and (answer_id is None or getattr(fact, "answer_id", None) == answer_id)
        ]

    def one(self, kind: type[F], answer_id: int | None = None) -> F:
        found = self.of(kind, answer_id)
        assert len(found) == 1, f"{len(found)} facts {kind.__name__}"
        return found[0]

    def ids(self, answer_id: int) -> list[int]:
        return [token for fact in self.of(Tokens, answer_id) for token in fact.ids]

    def stamps(self, answer_id: int) -> list[int]:
        return [stamp for fact in self.of(Tokens, answer_id) for stamp in fact.sampled_at_ns]

    def text(self, answer_id: int, channel: str = "answer") -> str:
        return "".join(fact.text for fact in self.of(Text, answer_id) if fact.channel == channel)

    def ended(self, answer_id: int) -> Ended:
        return self.one(Ended, answer_id)

    def prefill_ns(self, answer_id: int) -> int:
        chunks = self.of(Prefilled, answer_id)
        return chunks[-1].at_ns - chunks[0].started_at_ns

    def close(self) -> None:
        self.backend.close()
