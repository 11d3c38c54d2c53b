"""What a rule may look at: one answer, the session around it, and figures that several rules need. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median

from homeai.events import Ceilings, EngineFacts, ModelFacts, ModelShape, Sample, SlowStep
from homeai.explain.finding import Finding
from homeai.explain.predict import Basis
from homeai.explain.slow import CROWDED_SHARE, HALTED, Cause, cause_of
from homeai.metrics.alarms import GPU_PROBES, gpus_of
from homeai.metrics.best import other_engine
from homeai.metrics.gaps import gaps_ns
from homeai.metrics.phases import Phase, PhaseName, decode_parts, phases
from homeai.metrics.placement import Gpu, matched
from homeai.metrics.quantities import decode_tps, ttft
from homeai.metrics.quantities.decode_tps import TOKENS_MIN
from homeai.metrics.quantities.prefill_tps import EVALUATED_MIN, own_token_ns
from homeai.metrics.roofline import bandwidth_use, decode_bytes, felt_depth, prefill_ns, token_ns
from homeai.metrics.state import AnswerState, Loaded, ProbeState, Reading, SessionState

LOST_MIN = 32
"""Tokens that are read again without its being worth a word: an end that was spelled in another way."""
USUAL_MIN = 3
"""Earlier answers before there is a usual speed."""


@dataclass(frozen=True)
class AnswerContext:
    """One answer and all that explains it. Whatever is not known is None: a rule then says nothing."""

    state: SessionState
    answer: AnswerState
    found: dict[str, Finding | None] = field(default_factory=dict)
    """What rules found, by their ids, as far as they were asked: `homeai.explain.rules.found` keeps it here."""

    # --- what ran it --------------------------------------------------------------------------------------------------

    @property
    def load(self) -> Loaded | None:
        """The load of the model that it ran on."""
        return self.answer.load

    @property
    def engine(self) -> EngineFacts | None:
        """How the engine ran it."""
        return self.load.ended.engine if self.load is not None else None

    @property
    def model(self) -> ModelFacts | None:
        """The model."""
        return self.load.ended.model if self.load is not None else None

    @property
    def shape(self) -> ModelShape | None:
        """What a token of the model costs."""
        return self.model.shape if self.model is not None else None

    @property
    def measured(self) -> Ceilings | None:
        """What this machine was measured to do with the model, however it was run."""
        return self.state.ceilings.get(self.model.path) if self.model is not None else None

    @cached_property
    def ceilings(self) -> Ceilings | None:
        """What this machine was measured to do with the model, run as here but for the number of threads.

        None where it ran in another way: main memory says nothing about a GPU, nor a GPU about the processor.
        """
        measured = self.measured
        if measured is None or self.engine is None or other_engine(measured, self.engine, any_threads=True):
            return None
        return measured

    @property
    def on_cpu(self) -> bool:
        """Whether all of the model is known to run on the processor."""
        return self.engine is not None and self.engine.layers_offloaded == 0

    @property
    def threads(self) -> int | None:
        """How many threads really compute at once: no more than there are cores."""
        if self.engine is None or self.engine.threads is None:
            return None
        return min(self.engine.threads, self.engine.cores or self.engine.threads)

    def reading(self, probe: str, name: str) -> Reading | None:
        """What a probe read while the answer lived."""
        return self.answer.machine.get(probe, {}).get(name)

    @cached_property
    def others_percent(self) -> float | None:
        """What programs beside the engine and this one used of all cores while the answer lived, on average."""
        names = ("machine_percent", "engine_percent_of_machine", "program_percent_of_machine")
        known = [reading.mean for name in names if (reading := self.reading("cpu", name)) is not None]
        return max(0.0, known[0] - known[1] - known[2]) if len(known) == len(names) else None

    @cached_property
    def gpus(self) -> dict[str, Gpu | None]:
        """The GPUs that the model lies on, by the engine's names, each as it was read last while the answer lived.

        None where it is not sure which GPU of the probes that is, or where they did not read it.
        """
        ready, engine = self.state.engine.ready, self.engine
        if ready is None or engine is None or not engine.layers_offloaded:
            return {}
        read = {
            probe: _as_read(probe, readings, self.state.probes[probe].labels if probe in self.state.probes else {})
            for probe, readings in self.answer.machine.items()
            if probe in GPU_PROBES
        }
        holding = {place.name for place in engine.devices if place.layers}
        found = matched(ready.devices, gpus_of(read))
        return {name: gpu for name, gpu in found.items() if name in holding or not holding}

    # --- the wait -----------------------------------------------------------------------------------------------------

    @cached_property
    def phases(self) -> dict[PhaseName, Phase]:
        """All phases."""
        return phases(self.answer)

    def span_ns(self, name: PhaseName) -> int | None:
        """How long a phase took; None where it is not known."""
        value = self.phases[name].span.value
        return None if value is None else int(value)

    @cached_property
    def ttft_ns(self) -> int | None:
        """From the submit to the first token."""
        value = ttft.METRIC.compute(self.answer).value
        return None if value is None else int(value)

    @cached_property
    def prefill_ns(self) -> int | None:
        """The reading of the prompt, once it is over: to the end of the last chunk, also where it was cut.

        What a stop or a dead engine cut off after that is time without a token to show for it.
        """
        prefill = self.answer.prefill
        if self.span_ns("prefill") is None or prefill is None or prefill.read < prefill.done:
            return None
        return prefill.ended_at_ns - prefill.started_at_ns

    @property
    def read_whole(self) -> bool:
        """Whether all of the prompt was read; not when it was cut short in the middle."""
        tokenised = self.answer.tokenised
        return tokenised is not None and self.answer.evaluated == tokenised.prompt - tokenised.reused

    @cached_property
    def prefill_wait_ns(self) -> int:
        """What of the prefill went to other answers."""
        return self.answer.prefill.parts.wait_other_ns if self.answer.prefill is not None else 0

    @cached_property
    def prompt_token_ns(self) -> float | None:
        """What a token of a prompt takes to read: in this answer, else by the ceilings, else in an earlier answer."""
        own = own_token_ns(self.answer)
        if own is not None:
            return own
        if self.ceilings is not None:
            rates = [step.took_ns / step.tokens for step in self.ceilings.steps if step.tokens >= EVALUATED_MIN]
            if rates:
                return min(rates)
        earlier = [took for answer in self.earlier if (took := own_token_ns(answer)) is not None]
        return median(earlier) if earlier else None

    @cached_property
    def usual_prefill_ns(self) -> tuple[float, Basis] | None:
        """What reading its prompt takes when nothing disturbs, and by what: the ceilings, else earlier answers."""
        evaluated, tokenised, engine = self.answer.evaluated, self.answer.tokenised, self.engine
        if not evaluated or tokenised is None or engine is None:
            return None
        if self.ceilings is not None and not other_engine(self.ceilings, engine):
            took_ns = prefill_ns(self.ceilings, engine, evaluated, tokenised.reused, tokenised.context_used_others)
            return None if took_ns is None else (took_ns, "calibration")
        earlier = [each for answer in self.earlier if (each := own_token_ns(answer)) is not None]
        return (median(earlier) * evaluated, "session") if len(earlier) >= USUAL_MIN else None

    @cached_property
    def lost_tokens(self) -> int:
        """Prompt tokens that were read again although the cache once held them; 0 for a few."""
        tokenised = self.answer.tokenised
        parting = tokenised.divergence if tokenised is not None else None
        if tokenised is None or parting is None:
            return 0
        known_to = min(parting.held, tokenised.prompt, tokenised.reused + (self.answer.evaluated or 0))
        lost = known_to - max(parting.at, tokenised.reused)
        return lost if lost >= LOST_MIN else 0

    @cached_property
    def lost_ns(self) -> int:
        """What reading those took."""
        evaluated = self.answer.evaluated
        if not self.lost_tokens or not evaluated or self.prefill_ns is None:
            return 0
        return round((self.prefill_ns - self.prefill_wait_ns) * min(1.0, self.lost_tokens / evaluated))

    # --- the stream ---------------------------------------------------------------------------------------------------

    @cached_property
    def decode_ns(self) -> int | None:
        """From the first token to the last; None for fewer than two."""
        return self.span_ns("decode") if self.answer.tokens.count > 1 else None

    @property
    def written_ns(self) -> int | None:
        """The same, of an answer that is still being written so far."""
        tokens = self.answer.tokens
        if self.decode_ns is not None or tokens.count < 2 or tokens.first_at_ns is None or tokens.last_at_ns is None:
            return self.decode_ns
        return tokens.last_at_ns - tokens.first_at_ns

    @cached_property
    def steps(self) -> int:
        """Tokens after the first."""
        return max(0, self.answer.tokens.count - 1)

    @cached_property
    def gaps(self) -> list[int]:
        """All gaps between tokens."""
        return gaps_ns(self.answer.tokens)

    @cached_property
    def token_ns(self) -> float | None:
        """What a token took, on average."""
        return _token_ns(self.answer)

    @cached_property
    def depth(self) -> float | None:
        """How many tokens of context an average token of the answer looked back on."""
        tokenised = self.answer.tokenised
        return None if tokenised is None else tokenised.prompt + self.answer.tokens.count / 2

    @cached_property
    def compute_ns(self) -> int | None:
        """What of the stream was computing for it, by the engine's own parts."""
        parts, _ = decode_parts(self.answer)
        return parts.compute_ns if parts is not None else None

    @cached_property
    def beside_compute_ns(self) -> float:
        """What a token takes beside computing: choosing it, and its text."""
        parts, _ = decode_parts(self.answer)
        return (parts.sample_ns + parts.text_ns) / self.steps if parts is not None and self.steps else 0.0

    @cached_property
    def able_token_ns(self) -> float | None:
        """What a token takes by the ceilings at this depth, with what comes beside computing."""
        if self.ceilings is None or self.depth is None or self.engine is None:
            return None
        others = self.answer.tokenised.context_used_others if self.answer.tokenised is not None else 0
        return token_ns(self.ceilings, felt_depth(self.engine, self.depth, others), self.beside_compute_ns)

    @cached_property
    def earlier(self) -> list[AnswerState]:
        """Answers that ended before, on the same load of the model."""
        if self.load is None:
            return []
        return [
            answer
            for answer in self.state.answers.values()
            if answer.answer_id < self.answer.answer_id
            and answer.ended is not None
            and answer.load is not None
            and answer.load.ended.load_id == self.load.ended.load_id
        ]

    @cached_property
    def usual_token_ns(self) -> float | None:
        """What a token took in earlier answers that ran alone; None for too few of them."""
        took = [each for answer in self.earlier if not answer.shared and (each := _token_ns(answer)) is not None]
        return median(took) if len(took) >= USUAL_MIN else None

    @cached_property
    def normal_token_ns(self) -> float | None:
        """What a token should take with as many threads: by the ceilings, else as usual."""
        return self.usual_token_ns if self.able_token_ns is None or self._other_threads else self.able_token_ns

    @property
    def _other_threads(self) -> bool:
        ceilings, engine = self.ceilings, self.engine
        return ceilings is not None and engine is not None and bool(other_engine(ceilings, engine))

    @cached_property
    def able_ns(self) -> int | None:
        """What the stream should take by the ceilings, with the threads that those were measured with."""
        return None if self.able_token_ns is None else round(self.able_token_ns * self.steps)

    @cached_property
    def normal_ns(self) -> int | None:
        """What the stream should take by that."""
        return None if self.normal_token_ns is None else round(self.normal_token_ns * self.steps)

    @cached_property
    def memory_use(self) -> float | None:
        """Which share of the measured reading speed decode uses when nothing disturbs it, 0..1."""
        ceilings, shape, engine = self.ceilings, self.shape, self.engine
        if ceilings is None or not ceilings.read_bytes_per_s or shape is None or engine is None or self.depth is None:
            return None
        spans = [span for span in (self.token_ns, self.able_token_ns) if span is not None]
        if not spans:
            return None
        return bandwidth_use(decode_bytes(shape, engine, round(self.depth)), min(spans), ceilings.read_bytes_per_s)

    @cached_property
    def memory_ns(self) -> float | None:
        """What reading the bytes of one token takes at the measured reading speed."""
        ceilings, shape, engine = self.ceilings, self.shape, self.engine
        if ceilings is None or not ceilings.read_bytes_per_s or shape is None or engine is None or self.depth is None:
            return None
        return decode_bytes(shape, engine, round(self.depth)) * 1e9 / ceilings.read_bytes_per_s

    @cached_property
    def slow(self) -> list[tuple[SlowStep, Cause]]:
        """Tokens that came late, each with its cause."""
        return [(step, cause_of(step, self.threads, crowded=self.crowded)) for step in self.answer.slow_steps]

    @property
    def crowded(self) -> bool:
        """Whether other programs left the engine less than half of the processor time that its threads want."""
        if self.others_percent is None or self.engine is None or not self.engine.cores or not self.threads:
            return False
        return self.others_percent / 100 > 1 - CROWDED_SHARE * self.threads / self.engine.cores

    @cached_property
    def halted(self) -> list[SlowStep]:
        """Those in which nothing was computed."""
        return [step for step, cause in self.slow if cause in HALTED]

    @cached_property
    def halted_ns(self) -> int:
        """By how much those were late."""
        return sum(max(0, step.took_ns - step.usual_ns) for step in self.halted)


def _as_read(probe: str, readings: Mapping[str, Reading], labels: Mapping[str, str]) -> ProbeState:
    """The last reading of each value, as if they were of one moment."""
    values = {name: reading.last for name, reading in readings.items()}
    return ProbeState(Sample(at_ns=0, probe=probe, took_ns=0, values=values), labels=labels)


def _token_ns(answer: AnswerState) -> float | None:
    """What a token of an answer took; None for too few of them."""
    if answer.tokens.count < TOKENS_MIN:
        return None
    rate = decode_tps.METRIC.compute(answer).value
    return 1e9 / rate if rate else None
