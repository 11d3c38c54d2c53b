"""What this machine can do with a model: how long computations of 1 to 512 tokens take, and how fast memory is read.

One session with the model loaded; the engine times each computation by itself. Sizes take turns, so that a slow moment
spoils one repeat of each and not all of one, and of the repeats the first quartile counts: other programs only ever add
time. A size that would not fit into the budget is left out with all larger ones.
"""

from __future__ import annotations

import queue
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TypeVar

from homeai.clock import now_ns, wall_clock
from homeai.errors import engine_error
from homeai.events import (
    AnyFact,
    Ceilings,
    Ended,
    EngineEnded,
    EngineFacts,
    Fault,
    LoadEnded,
    LoadFailed,
    Measured,
    Sampler,
    Step,
)
from homeai.lab.memory_read import read_bytes_per_s
from homeai.lab.processor_time import ProcessorTime
from homeai.metrics.gaps import gaps_ns, nearest_rank
from homeai.metrics.soundness import ENGINE_SHARE_MIN
from homeai.models.modelfile import ModelFile
from homeai.options import EngineOptions
from homeai.session import Session
from homeai.settings import Settings

BUDGET_S = 25.0
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
LEAST = 4
"""Sizes up to here are measured in any case: with fewer nothing could be said."""

ROUNDS = 5
ANSWERS, WRITTEN = 3, 64
"""Answers that are written, and how many tokens each may have."""
LEAST_GAPS = 16

DEPTH = 1024
"""Tokens of context behind which some sizes are measured once more."""
BEHIND = (64, 63)
"""Sizes that are, beside the largest: from 64 tokens on llama.cpp computes attention on the processor in another way,
which halved what a token of context costs."""
SINGLE_DEPTHS = (1010, 500, 200)
"""Behind how many a single token is: 500 and 1,010 nearly fill the cells that are looked at, 512 and 1,024, and below
512 the threads share the work in another way. Three points, as what a token costs does not grow along one line."""

HOPELESS_SHARE = ENGINE_SHARE_MIN / 2
"""With so little of the processor for the engine, the rest need not be measured."""
REPEATS_MIN = 4
"""With fewer, the first quartile is the least and the median says little of how even they are."""
WRITE_SHARE = 0.15
"""How much of the budget the answers may take; on a slow machine they are shorter for it."""
BEHIND_SHARE = 0.4
"""How much of the budget the sizes behind a context may take, where most of it is gone before."""
MEMORY_NS = 2_000_000_000
"""About what reading memory takes, which comes last."""

F = TypeVar("F", LoadEnded, Measured, Ended)

_TASK = "Write a long story about an old house by a river, and go on for many pages."

_TICK_S = 0.1
_NEARLY = 0.99
_DEPTH_SHARE = 0.3
"""How much of the budget is kept for the sizes behind a context."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What is going on, in words: `computing 8 tokens at once`."""

    what: str
    done: float = 0.0
    """0..1, of the whole."""
    left_s: float = 0.0

    @property
    def words(self) -> str:
        """`computing 8 tokens at once, about 12 s left`."""
        if not self.done:
            return self.what
        left = f"about {self.left_s:.0f} s left" if self.left_s >= 1 else "longer than expected"
        return f"{self.what}, {left}"


def calibrate(
    settings: Settings,
    model: ModelFile,
    *,
    budget_s: float = BUDGET_S,
    tell: Callable[[Progress], None],
    log_file: Path | None = None,
    options: EngineOptions | None = None,
) -> tuple[Ceilings, LoadEnded]:
    """Measure, and return what was found with the facts of the load; that is not part of the budget.

    Args:
        settings: How the model is to run.
        model: What to run.
        budget_s: How long the measuring may take.
        tell: Gets the progress about ten times a second; an exception that it raises ends the measurement.
        log_file: Where the engine's stderr goes.
        options: How the model is to run, in the place of what the settings say.

    Raises:
        EngineError: The model cannot be loaded or run.
        BrokenModelError: The file cannot chat.
    """
    bench = _Bench(settings, model, budget_s, tell, log_file, options)
    try:
        return bench.run()
    finally:
        bench.session.close()


class _Bench:
    def __init__(
        self,
        settings: Settings,
        model: ModelFile,
        budget_s: float,
        tell: Callable[[Progress], None],
        log_file: Path | None,
        options: EngineOptions | None = None,
    ) -> None:
        self._tell = tell
        self._budget_ns = max(int(budget_s * 1e9), 1)
        self._began_ns = now_ns()
        self._single_ns = 1
        self._model = model
        self._inbox: queue.SimpleQueue[AnyFact] = queue.SimpleQueue()
        self._took: dict[tuple[int, int], list[int]] = defaultdict(list)
        self._cpu_ns = 0
        """Processor time that the engine used for what it told that of, and by size how long that took."""
        self._computed_ns: dict[int, int] = defaultdict(int)
        self._ends_ns = self._budget_ns
        """When all will be over, counted from the beginning, as far as that is known by now."""
        self.session = Session(
            options=options or settings.engine_options(model.context_trained),
            on_fact=self._inbox.put,
            backend=settings.value("backend"),
            log_file=log_file,
        )

    def run(self) -> tuple[Ceilings, LoadEnded]:
        """Load, measure the sizes, then those behind a context, then the memory."""
        self.session.use_model(self._model)
        loaded = self._wait(LoadEnded, "loading the model")
        engine = loaded.engine
        self._began_ns, self._ends_ns = now_ns(), self._budget_ns + MEMORY_NS
        load = ProcessorTime()
        self._measure(1, repeats=2)
        # The first ones settle clocks and caches; how long they took only says how often others can be repeated.
        self._single_ns = max(min(self._took.pop((1, 0)) or [1]), 1)
        self._measure_sizes()
        share = self._engine_share(engine)
        # What is so busy gets no better in a minute, and nothing of it is kept.
        hopeless = share is not None and not engine.layers_offloaded and share < HOPELESS_SHARE
        written_ns, written_depth = self._write() if not hopeless else (None, 0)
        if not hopeless:
            self._measure_behind_context(engine)
            share = self._engine_share(engine)
        # Of an engine that does not tell of its own processor time that of others cannot be told apart either.
        others = None if share is None else load.others_share()
        found = Ceilings(
            steps=self._steps(),
            written_ns=written_ns,
            written_depth=written_depth,
            noise=self._noise(),
            spread=self._spread(),
            unordered=self._unordered(),
            engine_share=share,
            others_share=others,
            read_bytes_per_s=None if hopeless else self._read_memory(engine),
            threads=engine.threads,
            layers_offloaded=engine.layers_offloaded,
            flash_attention=engine.flash_attention,
            kv_type_k=engine.kv_type_k,
            kv_type_v=engine.kv_type_v,
            measured_at=wall_clock(),
        )
        return found, loaded

    def _measure_sizes(self) -> None:
        until_ns = int(self._budget_ns * (1 - _DEPTH_SHARE))
        sizes = list(SIZES)
        for turn in range(ROUNDS):
            for tokens in tuple(sizes):
                known = self._took.get((tokens, 0)) or [2 * span for span in self._took.get((tokens // 2, 0), [])]
                wanted = not turn and tokens <= LEAST
                if not wanted and self._passed_ns() + max(known, default=0) > until_ns:
                    if not turn:
                        sizes = sizes[: sizes.index(tokens)]
                    break
                if not self._measure(tokens, repeats=self._repeats(tokens)):
                    sizes = sizes[: sizes.index(tokens)]
                    break

    def _steps(self) -> tuple[Step, ...]:
        """What was measured, without what was disturbed.

        Without context no step takes longer than one of more tokens, or than the same behind some.
        """
        steps: list[Step] = []
        least_ns = 1 << 62
        for (tokens, depth), spans in sorted(self._took.items(), key=lambda item: -item[0][0]):
            if spans:
                took_ns = nearest_rank(sorted(spans), 0.25)
                if not depth:
                    took_ns = least_ns = min(took_ns, least_ns, *self._behind(tokens))
                steps.append(Step(tokens=tokens, depth=depth, took_ns=took_ns))
        return tuple(sorted(steps, key=lambda step: (step.depth, step.tokens)))

    def _noise(self) -> float | None:
        """How much longer one token took in the median than in the first quartile, or there than behind a context."""
        spans = self._took.get((1, 0))
        if not spans or len(spans) < REPEATS_MIN:
            return None
        usual_ns = nearest_rank(sorted(spans), 0.25)
        return max([median(spans) / usual_ns, *(usual_ns / behind_ns for behind_ns in self._behind(1))]) - 1

    def _spread(self) -> float | None:
        """How much longer the median of a size of more tokens was than its first quartile, of the size with most."""
        spreads = [
            median(spans) / nearest_rank(sorted(spans), 0.25) - 1
            for (tokens, _), spans in self._took.items()
            if tokens > 1 and len(spans) >= REPEATS_MIN
        ]
        return max(spreads, default=None)

    def _unordered(self) -> float:
        """How much longer a size took than one of more tokens, of the size with most; 0 where none did."""
        most, least_ns = 0.0, 1 << 62
        for (_, depth), spans in sorted(self._took.items(), reverse=True):
            if spans and not depth:
                took_ns = nearest_rank(sorted(spans), 0.25)
                most, least_ns = max(most, took_ns / least_ns - 1), min(took_ns, least_ns)
        return most

    def _engine_share(self, engine: EngineFacts) -> float | None:
        """What the engine got of the processor time that its threads want, of all that was computed."""
        if not self._cpu_ns:
            return None
        cores = engine.cores or 1 << 16
        wanted_ns = sum(
            took_ns * min(cores, (engine.threads if tokens == 1 else engine.threads_batch or engine.threads) or cores)
            for tokens, took_ns in self._computed_ns.items()
        )
        return self._cpu_ns / wanted_ns if wanted_ns else None

    def _behind(self, tokens: int) -> list[int]:
        """What so many tokens took behind each context that was measured."""
        return [
            nearest_rank(sorted(spans), 0.25)
            for (size, depth), spans in self._took.items()
            if size == tokens and depth and spans
        ]

    def _repeats(self, tokens: int) -> int:
        """Up to eight of one token and fewer of more, together at most 2 % of the budget."""
        single_ns = min(self._took.get((1, 0)) or [self._single_ns])
        return max(1, min(8 // tokens, self._budget_ns // 50 // (single_ns * tokens)))

    def _measure_behind_context(self, engine: EngineFacts) -> None:
        largest = max((tokens for tokens, _ in self._took), default=1)
        whole_ns = median(self._took.get((largest, 0)) or [0])
        # The cache is filled once, as deep as time and room allow, and cut from size to size.
        depths = [depth for depth in (DEPTH, DEPTH // 2, DEPTH // 4) if depth + largest <= (engine.context or DEPTH)]
        may_ns = max(self._left_ns(), int(self._budget_ns * BEHIND_SHARE))
        in_time = [depth for depth in depths if may_ns > whole_ns * depth / largest]
        if not in_time:
            return
        deepest = in_time[0]
        fill_ns = whole_ns * deepest / largest
        singles = [depth for depth in SINGLE_DEPTHS if depth < deepest]
        # A token behind a context takes up to twice what it takes alone.
        single_ns = 2 * min(self._took.get((1, 0)) or [self._single_ns]) * len(singles)
        large = deepest >= largest and may_ns > fill_ns + 3 * whole_ns
        sizes = (largest, *(size for size in BEHIND if size < largest)) if large else ()
        left_ns = may_ns - fill_ns - 3 * whole_ns * bool(sizes)
        repeats = max(2, min(12, int(left_ns // max(single_ns, 1))))
        self._ends_ns = self._passed_ns() + int(fill_ns + 3 * whole_ns * bool(sizes)) + repeats * single_ns + MEMORY_NS
        for tokens in sizes:
            self._measure(tokens, depth=deepest, repeats=2, keep=True)
        for depth in singles:
            self._measure(1, depth=depth, repeats=repeats, keep=depth != singles[-1])

    def _write(self) -> tuple[int | None, int]:
        """Have some answers written: what a token takes, single late ones left out, and behind how many."""
        gaps: list[int] = []
        depths: list[float] = []
        single_ns = min(self._took.get((1, 0)) or [self._single_ns])
        tokens = max(LEAST_GAPS + 2, min(WRITTEN, int(self._budget_ns * WRITE_SHARE) // max(single_ns, 1)))
        sampler = Sampler(temperature=0.0, max_tokens=tokens)
        for number in range(ANSWERS):
            if number and self._passed_ns() > self._budget_ns * (1 - _DEPTH_SHARE / 2):
                break
            answer_id = self.session.ask(self.session.open_chat(), f"{number}. {_TASK}", sampler=sampler)
            while self._wait(Ended, "writing an answer").answer_id != answer_id:
                pass
            answer = self.session.state.answers[answer_id]
            if answer.tokenised is not None:
                gaps += gaps_ns(answer.tokens)
                depths.append(answer.tokenised.prompt + answer.tokens.count / 2)
        if len(gaps) < LEAST_GAPS:
            return None, 0
        limit_ns = 2 * median(gaps)
        usual = [gap for gap in gaps if gap <= limit_ns]
        return round(sum(usual) / len(usual)), round(sum(depths) / len(depths))

    def _read_memory(self, engine: EngineFacts) -> float | None:
        if engine.layers_offloaded:
            return None
        import psutil

        return read_bytes_per_s(
            engine.cores or engine.threads or 1,
            available_bytes=int(psutil.virtual_memory().available),
            tell=lambda: self._say("reading memory"),
        )

    def _measure(self, tokens: int, *, depth: int = 0, repeats: int = 1, keep: bool = False) -> bool:
        """Take one more measurement; False where it does not fit into the engine's context or batch."""
        wanted = self.session.measure(tokens, depth=depth, repeats=repeats, keep=keep)
        behind = f" behind {depth:,} tokens" if depth else ""
        while True:
            found = self._wait(Measured, f"computing {tokens} token{'s' * (tokens > 1)} at once{behind}")
            if found.measure_id == wanted:
                self._took[(tokens, depth)] += found.took_ns
                if found.cpu_ns is not None:
                    self._cpu_ns += found.cpu_ns
                    self._computed_ns[tokens] += sum(found.took_ns)
                return bool(found.took_ns)

    def _wait(self, kind: type[F], what: str) -> F:
        while True:
            self._say(what)
            try:
                fact = self._inbox.get(timeout=_TICK_S)
            except queue.Empty:
                continue
            if isinstance(fact, kind):
                return fact
            if isinstance(fact, LoadFailed):
                raise engine_error(fact.fault)
            if isinstance(fact, EngineEnded):
                raise engine_error(fact.fault or Fault(code="engine_died", message="The engine was ended."))

    def _left_ns(self) -> int:
        return self._budget_ns - self._passed_ns()

    def _passed_ns(self) -> int:
        return now_ns() - self._began_ns

    def _say(self, what: str) -> None:
        passed_ns = self._passed_ns() if self._took else 0
        # A meter that stands full while something still runs tells of an end that is not there.
        done = min(_NEARLY, passed_ns / self._ends_ns)
        self._tell(Progress(what, done, max(0, self._ends_ns - passed_ns) / 1e9))
