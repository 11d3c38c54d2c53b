"""Which settings answer fastest on this machine, with this build and this model.

Each setting's values take turns (A B A B ...), every trial one greedy answer in a session of its own: options belong to
a load, and two models at once might not fit into memory. A trial is a typical answer, or a share of it where the
machine is slow, so that the whole ends within its budget of time.

A micro-batch size is not among the questions: from 256 tokens on it changed the rate of reading by less than the noise
(0.97 to 1.00 of the best on two cores).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path

from homeai.clock import now_ns
from homeai.errors import engine_error
from homeai.events import Fault, LoadEnded, Sampler
from homeai.lab.comparing import (
    FEWEST_TRIALS,
    OUTPUT_TOKENS,
    PROMPT_TOKENS,
    Candidate,
    Trial,
    Verdict,
    decide,
    plan,
)
from homeai.metrics.quantities import metrics
from homeai.metrics.state import AnswerState
from homeai.models.modelfile import ModelFile
from homeai.session import Session
from homeai.settings import BY_KEY, Settings
from homeai.settings.kinds import Value

BUDGET_S = 30.0
QUICK_BUDGET_S = 10.0

KEYS = ("flash_attention", "threads")
"""The settings that are measured, the one with the most to gain first."""

PROBE = (48, 8)
"""Words and output tokens of the first answer, from which the others are sized: enough to tell a rate, and half of the
budget where a model reads 10 tokens a second and writes two."""

TOO_SLOW = 2.0
"""How many times as long as the default's a trial may take, and a second: one thread in place of sixteen would eat the
whole budget."""

_TICK_S = 0.1

# Plain words, most of them one token in every vocabulary.
_PROSE = (
    "the river ran down from the hill and past the old house where a woman sat at the door with a book in her hand and "
    "looked at the light on the water while the wind moved in the trees"
)
_TASK = "Now write a long story that goes on from here."


@dataclass(frozen=True, slots=True)
class Progress:
    """What is going on: which value of which setting (empty at first), and which run of how many."""

    key: str = ""
    shown: str = ""
    run: int = 0
    runs: int = 0
    left_s: float = 0.0
    """Roughly how much longer the whole takes."""


@dataclass(frozen=True, slots=True)
class Question:
    """A setting and the values to compare, the default first; fewer than two where `skipped` says why."""

    key: str
    candidates: tuple[Candidate, ...] = ()
    skipped: str = ""


def questions(settings: Settings, flash_in_use: bool | None) -> tuple[Question, ...]:
    """What to compare under these settings, which must hold no measured values.

    Args:
        settings: What the user chose, and defaults; a setting that the user chose is left alone.
        flash_in_use: What the engine did where flash attention was left to it; None where it does not say.
    """
    return tuple(_question(settings, key, flash_in_use) for key in KEYS)


def tune(
    settings: Settings,
    model: ModelFile,
    *,
    budget_s: float,
    tell: Callable[[Progress], None],
    log_file: Path | None = None,
) -> tuple[Verdict, ...]:
    """Measure, and return a verdict for each of `KEYS`.

    The first load is not part of the budget: it may have to read the model from the disk.

    Args:
        settings: What the user chose, and defaults; values measured before are in use where their setting is not the
            one being compared, and are preferred as `decide` says.
        model: What to run.
        budget_s: How long all of it may take.
        tell: Gets the progress about ten times a second; an exception that it raises ends the experiment.
        log_file: Where the engine's stderr goes.

    Raises:
        EngineError: The model cannot be loaded or run with the settings as they are.
        BrokenModelError: The file cannot chat.
    """
    bench = _Bench(settings, model, budget_s, tell, log_file)
    try:
        flash_in_use = bench.probe()
    except _SlowError:
        return tuple(bench.not_compared(key, f"a few words take more than {budget_s:g} s") for key in KEYS)
    asked = questions(settings.with_measured({}), flash_in_use)
    sizes = [len(question.candidates) for question in asked]
    return tuple(bench.compare(question, sizes[place:]) for place, question in enumerate(asked))


class _SlowError(Exception):
    """A trial took longer than it may."""


class _FaultError(Exception):
    """A trial failed."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


@dataclass(frozen=True, slots=True)
class _Run:
    """A trial that got to its end; `overhead_s` is what it took beside the answer."""

    answer: AnswerState
    loaded: LoadEnded
    overhead_s: float

    @property
    def trial(self) -> Trial:
        prefill, decode = (metrics()[f"rates.{name}_tps"].compute(self.answer) for name in ("prefill", "decode"))
        if prefill.value is None or decode.value is None:
            message = f"The answer gives no rates: {prefill.missing or decode.missing}."
            raise _FaultError(Fault(code="failure", message=message))
        return Trial(prefill.value, decode.value)


class _Bench:
    """Runs trials, and knows how fast the machine is and how much time is left."""

    def __init__(
        self,
        settings: Settings,
        model: ModelFile,
        budget_s: float,
        tell: Callable[[Progress], None],
        log_file: Path | None,
    ) -> None:
        self._before = settings
        self._settings = settings.with_measured({})
        self._model = model
        self._budget_s = budget_s
        self._tell = tell
        self._log_file = log_file
        self._in_use: dict[str, object] = {}
        """The values that replace defaults in the next run."""
        self._ends_at_ns = 0
        """When the budget is used up; known once the model was loaded."""
        self._overhead_s = 0.0
        self._extra_tokens = 0
        """What the chat template and the task add to a prompt's words."""
        self._context = 0
        self._typical_s = 0.0
        """What the typical answer takes with the default."""
        self._now = Progress()

    def probe(self) -> bool | None:
        """Learn the speed from an answer with every default; return whether the engine then uses flash attention.

        Raises `EngineError` or `BrokenModelError` when there is no answer, `_SlowError` when it takes too long.
        """
        words, output = PROBE
        try:
            run = self._run(words, output, self._budget_s)
            if run.loaded.page_cache not in ("warm", "unknown"):
                # How long a load takes is to be learned from one like those to come.
                run = self._run(words, output, self._budget_s)
            self._typical_s = run.trial.answer_s
        except _FaultError as problem:
            raise engine_error(problem.fault) from None
        assert run.answer.evaluated is not None
        self._overhead_s = run.overhead_s
        self._extra_tokens = max(run.answer.evaluated - words, 0)
        self._context = run.loaded.engine.context or PROMPT_TOKENS + OUTPUT_TOKENS
        self._in_use = {key: self._before.value(key) for key in KEYS if self._standing(key) is not None}
        return run.loaded.engine.flash_attention

    def not_compared(self, key: str, why: str) -> Verdict:
        """What becomes of a setting that is left as it is."""
        default = self._settings.value(key)
        return Verdict(
            key=key, default=default, chosen=self._before.value(key), why=f"not compared: {why}", decided=False
        )

    def compare(self, question: Question, sizes: Sequence[int]) -> Verdict:
        """Run the candidates in turn and choose one; `sizes` has the numbers of candidates from this question on."""
        key = question.key
        if question.skipped:
            return self.not_compared(key, question.skipped)
        planned = plan(sizes, overhead_s=self._overhead_s, typical_s=self._typical_s, left_s=self._left_s(now_ns()))
        if planned is None:
            return self.not_compared(key, "no time was left")
        # Some room stays for the tokens that end an answer.
        share = min(planned.share, (self._context - 16) / (PROMPT_TOKENS + OUTPUT_TOKENS))
        prompt, output = max(int(share * PROMPT_TOKENS), self._extra_tokens + 1), int(share * OUTPUT_TOKENS)
        candidates = list(question.candidates)
        for run in range(planned.rounds):
            if candidates[0].problem or all(candidate.problem for candidate in candidates[1:]):
                break
            if run >= FEWEST_TRIALS and not self._left_s(now_ns()):
                break
            for place, candidate in enumerate(candidates):
                if not candidate.problem:
                    self._now = Progress(key, candidate.shown, run + 1, planned.rounds)
                    self._in_use[key] = candidate.value
                    # A default that has a slow moment is no reason to give up the comparison.
                    limit_s = TOO_SLOW * share * self._typical_s + 1 if place else self._budget_s
                    candidates[place] = self._tried(candidate, prompt - self._extra_tokens, output, limit_s)
                    self._typical_s = candidates[0].answer_s or self._typical_s
        verdict = decide(key, candidates, self._standing(key))
        self._in_use[key] = verdict.chosen
        return replace(verdict, prompt_tokens=prompt, output_tokens=output)

    def _tried(self, candidate: Candidate, words: int, output: int, limit_s: float) -> Candidate:
        """The candidate after one more run with the options in use, which are its own."""
        try:
            run = self._run(words, output, limit_s)
            trial = run.trial
        except _FaultError as problem:
            return replace(candidate, problem=f"failed: {problem.fault.message}")
        except _SlowError:
            return replace(candidate, problem="took more than twice as long")
        self._overhead_s = run.overhead_s
        return replace(candidate, trials=(*candidate.trials, trial))

    def _run(self, words: int, output: int, limit_s: float) -> _Run:
        """Load the model and have one answer, which may take `limit_s` from the end of the load on."""
        started_at_ns = now_ns()
        session = Session(
            options=self._settings.with_measured(self._in_use).engine_options(self._model.context_trained),
            on_fact=lambda _fact: None,
            backend=self._settings.value("backend"),
            log_file=self._log_file,
        )
        try:
            session.use_model(self._model)
            prompt = " ".join([*islice(cycle(_PROSE.split()), words), _TASK])
            answer_id = session.ask(session.open_chat(), prompt, sampler=Sampler(temperature=0, max_tokens=output))
            while not session.wait(answer_id, _TICK_S):
                at_ns = now_ns()
                self._tell(replace(self._now, left_s=self._left_s(at_ns)))
                loaded = session.state.load.loaded
                if loaded is not None and at_ns - loaded.ended.at_ns > limit_s * 1e9:
                    raise _SlowError
        finally:
            session.close()
        answer, loaded = session.state.answers[answer_id], session.state.load.loaded
        assert answer.ended is not None
        if answer.ended.fault is not None:
            raise _FaultError(answer.ended.fault)
        assert loaded is not None
        if not self._ends_at_ns:
            self._ends_at_ns = loaded.ended.at_ns + int(self._budget_s * 1e9)
        took_ns = now_ns() - started_at_ns
        return _Run(answer, loaded.ended, (took_ns - (answer.ended.at_ns - loaded.ended.at_ns)) / 1e9)

    def _standing(self, key: str) -> Value:
        """The value of an earlier measurement, where it still makes sense."""
        found = self._before.resolved[key]
        return found.value if found.source == "measured" else None

    def _left_s(self, at_ns: int) -> float:
        return max(0.0, (self._ends_at_ns - at_ns) / 1e9) if self._ends_at_ns else self._budget_s


def _question(settings: Settings, key: str, flash_in_use: bool | None) -> Question:
    found = settings.resolved[key]
    if found.source != "default":
        return Question(key, skipped=f"set by {found.origin}")
    if key == "threads":
        cores = settings.machine.cores.usable
        values: list[Value] = [found.value, *sorted({1, max(1, cores // 2), cores} - {found.value}, reverse=True)]
        if len(values) < 2:
            return Question(key, skipped="there is one core only")
    else:
        values = [found.value, "on" if flash_in_use is False else "off"]
    possible = [value for value in values if settings.with_measured({key: value}).value(key) == value]
    if len(possible) < 2:
        return Question(key, skipped="no other value goes with the other settings")
    kind = BY_KEY[key].kind
    shown = {value: kind.show(value) for value in possible}
    if key == "flash_attention" and flash_in_use is not None:
        shown[found.value] += " (on)" if flash_in_use else " (off)"
    return Question(key, tuple(Candidate(value, shown[value]) for value in possible))
