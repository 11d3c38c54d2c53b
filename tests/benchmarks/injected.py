"""Causes of waits and slow streams, brought about on the real engine, each with what should be found first."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from homeai.events import Ceilings, EngineReady, LoadEnded, Sampler, Tokens
from homeai.explain import Explanation, explain
from homeai.explain.finding import Subject
from homeai.metrics.quantities import decode_tps
from homeai.models.modelfile import ModelFile, examine
from homeai.platform import usable_cores
from homeai.session import Session
from homeai.session.chat import Chat
from homeai.session.sampling import start_sampling
from tests.engine.recorder import Recorder
from tests.engine.rig import options, starter
from tests.models.tiny import write_chat_model

THREADS = usable_cores().usable
HARM = 1.15
"""How much faster the same answer must be without a cause, for that to have been one."""
TOKENS = 96
_WORDS = (
    "river",
    "mill",
    "stone",
    "letter",
    "garden",
    "winter",
    "lamp",
    "bridge",
    "song",
    "teacher",
    "window",
    "bread",
)


def story(words: int, seed: int) -> str:
    """A prompt of about so many tokens that differs from the first word on for every seed."""
    chosen = random.Random(seed)
    text = " ".join(chosen.choice(_WORDS) for _ in range(words))
    return f"{seed} {text}. Write a very long story with these words and go on for many pages."


class Bench:
    """One session on the real engine, with probes, and what this machine can do."""

    def __init__(self, ceilings: Ceilings | None, *, model: ModelFile | None = None, **changes: Any) -> None:
        self.recorder = Recorder()
        self.model = model or examine(starter())
        settings = {"threads": THREADS, "threads_batch": THREADS, "sequences": 2, **changes}
        self.session = Session(options=options(**settings), on_fact=self.recorder)
        self.session.use_model(self.model)
        self._stop_sampling = start_sampling(self.session)
        if ceilings is not None:
            self.session.set_ceilings(examine(starter()), ceilings)
        self.recorder.wait_for(LoadEnded, within_s=120)
        self.run("Say hello.", tokens=8)

    @property
    def worker_pid(self) -> int:
        return self.recorder.of(EngineReady)[-1].pid

    def ask(self, prompt: str, *, chat: Chat | None = None, tokens: int | None = TOKENS, **more: Any) -> int:
        return self.session.ask(
            chat or self.session.open_chat(), prompt, sampler=Sampler(temperature=0.0, max_tokens=tokens), **more
        )

    def wait(self, answer_id: int) -> Explanation:
        assert self.session.wait(answer_id, 300)
        return explain(self.session.state, answer_id)

    def run(self, prompt: str, **more: Any) -> Explanation:
        return self.wait(self.ask(prompt, **more))

    def until_written(self, answer_id: int, tokens: int) -> None:
        """Wait until an answer has so many tokens."""
        self.recorder.wait_for(
            Tokens, lambda fact: fact.answer_id == answer_id and fact.first + len(fact.ids) >= tokens, within_s=120
        )

    def close(self) -> None:
        self._stop_sampling()
        self.session.close()


@contextmanager
def bench(*arguments: Any, **changes: Any) -> Iterator[Bench]:
    made = Bench(*arguments, **changes)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def processes(code: str, number: int) -> Iterator[None]:
    """Other programs that run this Python meanwhile."""
    started = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(number)]
    time.sleep(0.5)
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


@dataclass(frozen=True)
class Injection:
    """A cause; `run` brings it about with prompts of this seed and returns the explanation of the answer it hit."""

    name: str
    subject: Subject
    expected: str
    run: Callable[[Ceilings, Path, int], Explanation | None]
    """None where it did no harm this time, so that there was nothing to name."""


def _evicted(ceilings: Ceilings, folder: Path, seed: int) -> Explanation:
    copy = folder / f"copy{seed}.gguf"
    shutil.copy(starter(), copy)
    with copy.open("rb+") as file:
        os.fsync(file.fileno())
        if sys.platform == "linux":
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    try:
        return _loaded_for(folder, copy, seed)
    finally:
        copy.unlink()


def _load_paid(ceilings: Ceilings, folder: Path, seed: int) -> Explanation:
    examine(starter())
    Path(starter()).read_bytes()
    return _loaded_for(folder, starter(), seed)


def _loaded_for(folder: Path, path: Path, seed: int) -> Explanation:
    """An answer that waits for a change of model in an engine that runs."""
    with bench(None, model=examine(write_chat_model(folder / "tiny.gguf"))) as made:
        made.session.use_model(examine(path))
        return made.run(f"{seed}: hello.", chat=made.session.open_chat("."), tokens=16)


def _busy_programs(ceilings: Ceilings, folder: Path, seed: int) -> Explanation:
    with bench(ceilings) as made, processes("while True: pass", THREADS):
        return made.run(story(40, seed))


def _second_engine(ceilings: Ceilings, folder: Path, seed: int) -> Explanation:
    with bench(ceilings) as rival, bench(ceilings) as made:
        other = rival.ask(story(200, -seed), tokens=3000)
        rival.until_written(other, 10)
        explanation = made.run(story(40, seed))
        rival.session.stop(other)
        return explanation


def _many_threads(ceilings: Ceilings, folder: Path, seed: int) -> Explanation:
    with bench(ceilings, threads=4 * THREADS) as made:
        return made.run(story(40, seed), tokens=24)


def _one_thread(ceilings: Ceilings, folder: Path, seed: int) -> Explanation | None:
    """Two cores that are two halves of one write a small model hardly faster than one does: 138 to 126 tokens/s."""
    rates: list[float] = []
    for threads in (THREADS, 1):
        with bench(ceilings, threads=threads) as made:
            made.run(story(40, seed))
            answer_id = made.ask(story(40, -seed))
            explanation = made.wait(answer_id)
            rates.append(decode_tps.METRIC.compute(made.session.state.answers[answer_id]).value or 0.0)
    many, one = rates
    return explanation if one * HARM <= many else None


def _long_prompt(ceilings: Ceilings, folder: Path, seed: int) -> Explanation:
    with bench(ceilings) as made:
        return made.run(story(900, seed), tokens=16)


def _tiny_prompt(ceilings: Ceilings, folder: Path, seed: int) -> Explanation:
    with bench(ceilings) as made:
        return made.run(f"{seed}?", chat=made.session.open_chat("."), tokens=16)


def _early_edit(ceilings: Ceilings, folder: Path, seed: int) -> Explanation:
    with bench(ceilings) as made:
        chat = made.session.open_chat()
        prompt = story(500, seed)
        first = made.ask(prompt, chat=chat, tokens=24)
        made.wait(first)
        return made.run(prompt.replace(str(seed), "Dear friend", 1), chat=chat, tokens=24, replaces=first)


def _second_prefill(ceilings: Ceilings, folder: Path, seed: int) -> Explanation:
    with bench(ceilings) as made:
        writing = made.ask(story(40, seed), tokens=160)
        made.until_written(writing, 24)
        reading = made.ask(story(1500, -seed), tokens=4)
        explanation = made.wait(writing)
        made.wait(reading)
        return explanation


def _full_context(ceilings: Ceilings, folder: Path, seed: int) -> Explanation:
    with bench(ceilings, context=512, sequences=1) as made:
        # Room for about fifty tokens, fewer than any answer to this has.
        return made.run(story(420, seed), tokens=None)


def _halted(ceilings: Ceilings, folder: Path, seed: int) -> Explanation:
    with bench(ceilings) as made:
        answer_id = made.ask(story(40, seed))
        made.until_written(answer_id, 24)
        os.kill(made.worker_pid, signal.Signals["SIGSTOP"])
        time.sleep(2)
        os.kill(made.worker_pid, signal.Signals["SIGCONT"])
        return made.wait(answer_id)


def _slow_interface(ceilings: Ceilings, folder: Path, seed: int) -> Explanation:
    with bench(ceilings) as made:
        busy = threading.Event()

        def draw() -> None:
            while not busy.is_set():
                pass

        thread = threading.Thread(target=draw, daemon=True)
        thread.start()
        try:
            return made.run(story(40, seed), tokens=192)
        finally:
            busy.set()
            thread.join()


def _behind_another(ceilings: Ceilings, folder: Path, seed: int) -> Explanation:
    with bench(ceilings, sequences=1) as made:
        first = made.ask(story(40, -seed), tokens=128)
        made.until_written(first, 2)
        return made.run(f"{seed}: hello.", tokens=8)


INJECTIONS = (
    Injection("page cache evicted before the load", "wait", "cold_page_cache", _evicted),
    Injection("a load paid by the answer", "wait", "cold_load", _load_paid),
    Injection("waiting behind another answer", "wait", "waiting_for_other", _behind_another),
    Injection("a long prompt", "wait", "long_prompt", _long_prompt),
    Injection("a tiny prompt", "wait", "short_prompt", _tiny_prompt),
    Injection("an early word edited", "wait", "prefix_lost", _early_edit),
    Injection("other programs compute", "stream", "cpu_contention", _busy_programs),
    Injection("a second inference process", "stream", "cpu_contention", _second_engine),
    Injection("more threads than cores", "stream", "too_many_threads", _many_threads),
    Injection("one thread", "stream", "too_few_threads", _one_thread),
    Injection("another chat's long prefill", "stream", "interference", _second_prefill),
    Injection("the worker halted for 2 s", "stream", "stall", _halted),
    Injection("a slow interface", "stream", "interface_cost", _slow_interface),
    Injection("a full context", "answer", "cut_by_context", _full_context),
)
