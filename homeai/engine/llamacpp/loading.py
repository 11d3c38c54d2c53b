"""Loading a model: file, context, warm-up, each timed, with the truth about where everything went."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from homeai.clock import now_ns
from homeai.engine.backend import Emit
from homeai.engine.llamacpp import library
from homeai.engine.llamacpp.native import Context, Model
from homeai.engine.llamacpp.placement import TELLING, Layout, read_layout
from homeai.engine.llamacpp.prompting import PromptMaker
from homeai.engine.llamacpp.room import available_bytes, estimated, refuse_what_cannot_fit
from homeai.engine.wire import Load
from homeai.errors import EngineError
from homeai.events import EngineFacts, LoadEnded, LoadProgress, LoadStage, ModelFacts, Notice, PageCache, Placement
from homeai.models.fit import Plan, read_plan, steps
from homeai.platform.cores import usable_cores
from homeai.platform.paging import major_faults, resident_fraction, resident_pages
from homeai.units import count

READ_BYTES = 4 * 1024 * 1024
"""One read while the file is brought into the page cache: enough for full disk speed, few enough for progress."""

PROGRESS_NS = 100_000_000
"""Progress facts are at most this close together."""


@dataclass(slots=True)
class Loaded:
    """A model ready to answer."""

    model: Model
    context: Context
    prompts: PromptMaker
    facts: LoadEnded
    on_gpu: bool

    def close(self) -> None:
        """Free the context, then the weights it refers to."""
        self.context.close()
        self.model.close()


class LogTail:
    """Keeps what llama.cpp says of placement during a load, and passes warnings and errors on to the worker's log."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self.lines: list[str] = []
        self.errors: list[str] = []
        self._keeps = False
        self._level = 0

    def __call__(self, level: int, text: str) -> None:
        """Take one message of the library; level 5 goes on with the last one's."""
        self._level = self._level if level == 5 else level
        if self._keeps:
            if any(sign in text for sign in TELLING):
                self.lines.append(text)
            if self._level >= 4 and text.strip():
                self.errors.append(text.strip())
        if self._level >= 3:
            self._write(text)

    def open(self) -> None:
        """Keep lines from here on."""
        self.lines, self.errors, self._keeps = [], [], True

    def shut(self) -> None:
        """Keep no more; what was kept stays until the next `open`."""
        self._keeps = False


def load(request: Load, emit: Emit, log: LogTail) -> Loaded:
    """Load the model and create its context; raises `EngineError` with what went wrong and what would help."""
    began_ns = now_ns()
    progress = _Progress(request, emit)
    paths = [Path(os.fsdecode(name)) for name in request.files]
    options = request.options
    log.open()
    faults_before = major_faults()
    try:
        cached, cache = _bring_into_cache(paths, progress)
    except OSError as problem:
        raise EngineError(
            f"{request.name} could not be read: {problem.strerror or problem}.",
            code="load_failed",
            help="Check the disk, or choose another model.",
        ) from problem
    header = _HeaderReader(paths)
    try:
        model = Model(
            list(request.files),
            gpu_layers=options.gpu_layers,
            on_progress=lambda fraction: progress.tell("tensors", fraction),
        )
    except OSError as problem:
        raise EngineError(
            f"llama.cpp could not load {request.name}: {_reason(log)}.",
            code="load_failed",
            help=_other_model(log),
        ) from problem
    file_end_ns = now_ns()
    try:
        progress.tell("context", None, force=True)
        wanted = options.context or model.context_trained
        on_gpu = (read_layout(log.lines).layers_offloaded or 0) > 0
        places = estimated(header.plan, options, on_gpu, wanted)
        if header.plan is not None:
            refuse_what_cannot_fit(header.plan, places, model, request, wanted)
        context = _create_context(model, request, wanted, log)
    except BaseException:  # whatever it is, the model's memory is given back
        model.close()
        raise
    if wanted not in (context.size, model.context_trained):
        emit(_rounded(wanted, context.size))
    if options.batch < options.sequences:
        emit(_raised(options.batch, context.batch_size))
    prompts = PromptMaker(model, emit)
    context_end_ns = now_ns()
    progress.tell("warmup", None, force=True)
    bos = model.vocabulary.bos
    context.warm_up(bos if bos is not None else model.vocabulary.eos or 0)
    log.shut()
    layout = read_layout(log.lines)
    faults_after = major_faults()
    end_ns = now_ns()
    facts = LoadEnded(
        at_ns=end_ns,
        load_id=request.load_id,
        file_ns=file_end_ns - began_ns,
        context_ns=context_end_ns - file_end_ns,
        warmup_ns=end_ns - context_end_ns,
        page_cache=cache,
        cached_fraction=cached,
        major_faults=None if faults_before is None or faults_after is None else faults_after - faults_before,
        model=_model_facts(model, header.plan, request, prompts.template_name),
        engine=_engine_facts(request, context, layout, places),
    )
    return Loaded(model=model, context=context, prompts=prompts, facts=facts, on_gpu=on_gpu)


class _HeaderReader:
    """Reads the header while llama.cpp loads: 11 ms for the starter model, 40 for one with 150,000 tokens."""

    def __init__(self, paths: list[Path]) -> None:
        self._plan: Plan | None = None
        self._thread = threading.Thread(target=self._read, args=(paths,), name="header", daemon=True)
        self._thread.start()

    def _read(self, paths: list[Path]) -> None:
        self._plan = read_plan(paths)

    @property
    def plan(self) -> Plan | None:
        self._thread.join()
        return self._plan


class _Progress:
    def __init__(self, request: Load, emit: Emit) -> None:
        self._request = request
        self._emit = emit
        self._told_at_ns = 0

    def tell(
        self, stage: LoadStage, fraction: float | None, *, done_bytes: int | None = None, force: bool = False
    ) -> None:
        at_ns = now_ns()
        if not force and fraction != 1.0 and at_ns - self._told_at_ns < PROGRESS_NS:
            return
        self._told_at_ns = at_ns
        self._emit(
            LoadProgress(
                at_ns=at_ns,
                load_id=self._request.load_id,
                stage=stage,
                fraction=fraction,
                done_bytes=done_bytes,
                total_bytes=self._request.size_bytes if done_bytes is not None else None,
            )
        )


def _bring_into_cache(paths: list[Path], progress: _Progress) -> tuple[float | None, PageCache]:
    """Read what is not in the page cache yet, telling the progress; return how much was there before.

    llama.cpp maps the file and the kernel then reads it in one blocking call before the first progress callback: no
    progress and no disk rate to show. Reading the missing pieces first costs nothing extra (the mapping finds them in
    the cache) and a file that is there already is not read at all. Where residency is unknown nothing is read here.
    """
    import mmap

    pages_of = {path: resident_pages(path) for path in paths}
    known = [pages for pages in pages_of.values() if pages is not None]
    if len(known) < len(paths) or not sum(map(len, known)):
        return None, "unknown"
    fraction = resident_fraction(b"".join(known))
    cache: PageCache = "warm" if fraction >= 0.99 else "cold" if fraction <= 0.05 else "partly"
    if cache == "warm" or not _fits_in_memory(sum(map(len, known)) * mmap.PAGESIZE):
        return fraction, cache
    buffer = bytearray(READ_BYTES)
    step = READ_BYTES // mmap.PAGESIZE
    done = 0
    for path, pages in pages_of.items():
        assert pages is not None
        with path.open("rb", buffering=0) as file:
            for first in range(0, len(pages), step):
                piece = pages[first : first + step]
                if piece.strip(b"\x01"):
                    file.seek(first * mmap.PAGESIZE)
                    file.readinto(buffer)
                done += len(piece) * mmap.PAGESIZE
                progress.tell("file", None, done_bytes=done)
    return fraction, cache


def _fits_in_memory(needed_bytes: int) -> bool:
    return needed_bytes < 0.8 * available_bytes()


def _create_context(model: Model, request: Load, wanted: int, log: LogTail) -> Context:
    options = request.options
    try:
        return Context(
            model,
            # llama.cpp cuts the batch to the context as it is asked for, before it rounds that.
            context=steps(wanted),
            # It wants room for a result of every sequence in one batch, and ends the process where there is none.
            batch=max(options.batch, options.sequences),
            ubatch=options.ubatch,
            threads=options.threads,
            threads_batch=options.threads_batch,
            flash_attention=options.flash_attention,
            kv_type_k=options.kv_type_k,
            kv_type_v=options.kv_type_v,
            kv_offload=options.kv_offload,
            sequences=options.sequences,
        )
    except MemoryError as problem:
        raise EngineError(
            f"llama.cpp could not create a context of {count(wanted)} tokens: {_reason(log)}.",
            code="load_failed",
            help=_MORE_MEMORY
            if _wants_memory(log)
            else "A smaller context or another cache type may work: --context 4096 --kv-type-k f16 --kv-type-v f16.",
        ) from problem


def _rounded(wanted: int, made: int) -> Notice:
    """What to tell of a context that llama.cpp made larger than it was asked to."""
    rule = "The smallest context is 256" if wanted < 256 else "llama.cpp makes contexts in steps of 256"
    message = f"{rule} tokens; it is {count(made)} now, in place of {count(wanted)}."
    return Notice(at_ns=now_ns(), code="context_rounded", message=message)


def _raised(wanted: int, made: int) -> Notice:
    """What to tell of a batch that had no room for a token of every answer."""
    message = f"Each answer at a time needs a place in the batch: it is {count(made)} now, in place of {count(wanted)}."
    return Notice(at_ns=now_ns(), code="batch_raised", message=message)


_MORE_MEMORY = "It needs more memory than is free: --gpu-layers N puts less on the GPU, --context N shortens the cache."


def _other_model(log: LogTail) -> str:
    """What to do about a model that could not be loaded."""
    if _wants_memory(log):
        return _MORE_MEMORY
    if any("unknown model architecture" in line for line in log.errors):
        return "This build of llama.cpp does not know that kind of model; a newer homeai may."
    return "Another file of the same model may work."


def _wants_memory(log: LogTail) -> bool:
    return any("out of memory" in line or "failed to allocate" in line for line in log.errors)


def _reason(log: LogTail) -> str:
    """The library's first error line without its function name: later ones only repeat that loading failed."""
    if not log.errors:
        return "it gave no reason"
    text = log.errors[0].rstrip(". ")
    name, colon, rest = text.partition(": ")
    return rest if colon and " " not in name else text


def _model_facts(model: Model, plan: Plan | None, request: Load, template: str) -> ModelFacts:
    arch = model.metadata("general.architecture")
    return ModelFacts(
        name=request.name,
        path=request.path,
        size_bytes=request.size_bytes,
        params=model.params,
        quant=request.quant,
        arch=arch,
        layers=model.layers,
        context_trained=model.context_trained,
        template=template,
        rolls_back=model.rolls_back,
        shape=plan.shape if plan is not None else None,
    )


def _engine_facts(request: Load, context: Context, layout: Layout, places: tuple[Placement, ...]) -> EngineFacts:
    options = request.options
    flash = layout.flash_attention
    return EngineFacts(
        backend="llama.cpp",
        build=library.BUILD,
        devices=layout.devices,
        layers_offloaded=layout.layers_offloaded,
        layers_total=layout.layers_total,
        threads=options.threads,
        threads_batch=options.threads_batch,
        batch=context.batch_size,
        ubatch=context.ubatch_size,
        flash_attention=options.flash_attention if flash is None else flash,
        kv_type_k=options.kv_type_k,
        kv_type_v=options.kv_type_v,
        context=context.size,
        sequences=options.sequences,
        gpu_layers_asked=options.gpu_layers,
        gpu_asked=options.gpu_asked,
        flash_attention_asked=options.flash_attention,
        attention_fell_back=layout.attention_fell_back,
        kv_offload=options.kv_offload,
        estimated=places,
        graph_splits=layout.graph_splits,
        cores=usable_cores().usable,
    )
