"""What a screen shows of a model load."""

from __future__ import annotations

from dataclasses import dataclass

from homeai.events import Fault, LoadProgress, LoadStage, LoadStarted, PageCache, Placement
from homeai.metrics.state import AnswerState, Loaded, SessionState

LOAD_RATE_MIN_NS = 100_000_000
"""No disk rate over less than a tenth of a second."""


@dataclass(frozen=True, slots=True)
class LoadView:
    """A model load: the one going on, or the last one."""

    name: str
    path: str
    size_bytes: int
    running: bool
    paid: bool
    """Some of it lies after this answer's submit and before its begin; False in `load_view`."""
    elapsed_ns: int
    """So far, or in all when it is over."""
    ended_at_ns: int | None
    """The stamp of its end; None while it goes on."""
    before_ns: int | None
    """How long before this answer's submit it was over; None where it was not, and in `load_view`."""
    stage: LoadStage | None
    """Of a running load."""
    fraction: float | None
    """0..1, of a running load: the engine's own figure, else bytes read of all bytes."""
    done_bytes: int | None
    total_bytes: int | None
    bytes_per_s: float | None
    """Over the whole load so far; None when too little was read to tell."""
    file_ns: int | None = None
    context_ns: int | None = None
    warmup_ns: int | None = None
    page_cache: PageCache | None = None
    buffers: tuple[Placement, ...] = ()
    """Of a model that is ready: each device with its layers and the sizes of its weights, KV cache and work buffers."""
    fault: Fault | None = None


def load_view(state: SessionState, now_ns: int) -> LoadView | None:
    """Return the load that is going on, else the last one (also a failed one); None when there was none."""
    load = state.load
    if load.loading is not None:
        return _running_load(load.loading, load.progress, now_ns)
    if load.attempt is not None and (load.loaded is None or load.loaded.started != load.attempt):
        return _broken_load(state, load.attempt)
    return _done_load(load.loaded) if load.loaded is not None else None


def load_of(state: SessionState, answer: AnswerState, now_ns: int, *, paid: bool) -> LoadView | None:
    """Return the load that an answer used or waits for; None when there was none."""
    attempt = answer.load_attempt
    if answer.load is not None:
        return _done_load(answer.load, paid=paid, submitted_at_ns=answer.submitted.at_ns if answer.submitted else None)
    if attempt is not None and attempt == state.load.loading:
        return _running_load(attempt, state.load.progress, now_ns, paid=paid)
    return _broken_load(state, attempt, paid=paid) if attempt is not None else None


def _running_load(started: LoadStarted, progress: LoadProgress | None, now_ns: int, *, paid: bool = False) -> LoadView:
    elapsed_ns = max(0, now_ns - started.at_ns)
    done = progress.done_bytes if progress is not None else None
    total = (progress.total_bytes if progress is not None else None) or started.size_bytes
    fraction = progress.fraction if progress is not None else None
    if fraction is None and done is not None and total > 0:
        fraction = min(1.0, done / total)
    # The rate belongs to the stretch that the bytes were read in, which ends with the fact that tells of them.
    read_ns = progress.at_ns - started.at_ns if progress is not None else 0
    return LoadView(
        name=started.name,
        path=started.path,
        size_bytes=started.size_bytes,
        running=True,
        paid=paid,
        elapsed_ns=elapsed_ns,
        ended_at_ns=None,
        before_ns=None,
        stage=progress.stage if progress is not None else None,
        fraction=fraction,
        done_bytes=done,
        total_bytes=total,
        bytes_per_s=done * 1e9 / read_ns if done and read_ns >= LOAD_RATE_MIN_NS else None,
    )


def _done_load(load: Loaded, *, paid: bool = False, submitted_at_ns: int | None = None) -> LoadView:
    ended = load.ended
    before_ns = None if submitted_at_ns is None or submitted_at_ns < ended.at_ns else submitted_at_ns - ended.at_ns
    parts_ns = ended.file_ns + ended.context_ns + ended.warmup_ns
    return LoadView(
        name=ended.model.name,
        path=ended.model.path,
        size_bytes=ended.model.size_bytes,
        running=False,
        paid=paid,
        elapsed_ns=load.total_ns if load.total_ns is not None else parts_ns,
        ended_at_ns=ended.at_ns,
        before_ns=before_ns,
        stage=None,
        fraction=None,
        done_bytes=None,
        total_bytes=None,
        bytes_per_s=None,
        file_ns=ended.file_ns,
        context_ns=ended.context_ns,
        warmup_ns=ended.warmup_ns,
        page_cache=ended.page_cache,
        buffers=ended.engine.devices,
    )


def _broken_load(state: SessionState, started: LoadStarted, *, paid: bool = False) -> LoadView:
    """Show a load that did not get to its end: it failed, it was stopped, or its worker is gone."""
    failed, gone = state.load.failed, state.engine.ended
    ended_at_ns, fault = started.at_ns, None
    if failed is not None and failed.load_id == started.load_id:
        ended_at_ns, fault = failed.at_ns, failed.fault
    elif gone is not None and gone.at_ns >= started.at_ns:
        ended_at_ns, fault = gone.at_ns, gone.fault
    return LoadView(
        name=started.name,
        path=started.path,
        size_bytes=started.size_bytes,
        running=False,
        paid=paid,
        elapsed_ns=max(0, ended_at_ns - started.at_ns),
        ended_at_ns=ended_at_ns,
        before_ns=None,
        stage=None,
        fraction=None,
        done_bytes=None,
        total_bytes=None,
        bytes_per_s=None,
        fault=fault,
    )
