"""The vocabulary of facts: what happened, where it happened, stamped when it happened.

Every figure on a screen, in a file or in a sentence is derived from these by pure functions. A fact is frozen, tagged
by `kind` and encodes to one JSON object. Rules of the vocabulary:

- Fields that end in `at_ns` are stamps of `homeai.clock.now_ns`, in the session's clock (a worker's stamps are shifted
  by the offset of its hello when they arrive); every other `*_ns` is a span. The suffix is what `shift` goes by.
- A quantity that was not measured is `None`, never 0.
- New fields get defaults, so that an old record still reads; the meaning of a field never changes under its name.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

SCHEMA = 1

FinishReason = Literal["stop", "length", "context", "cancelled", "error"]
Channel = Literal["answer", "reasoning"]
PageCache = Literal["warm", "partly", "cold", "unknown"]
LoadStage = Literal["file", "tensors", "context", "warmup"]
Words = Literal["full", "no-text"]


class Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A value inside a fact; not a fact of its own."""


class Fact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind"):
    """Something that happened at `at_ns`."""

    at_ns: int


# --- values -----------------------------------------------------------------------------------------------------------


class Sampler(Part, frozen=True, kw_only=True):
    """How the next token is chosen. Temperature 0 is greedy: the other values then do not matter."""

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    repeat_penalty: float = 1.0
    seed: int | None = None
    """None asks for a fresh random seed; the seed that was used is told in `Began.seed`."""
    max_tokens: int | None = None
    """None writes until the model ends or the context is full."""
    stop: tuple[str, ...] = ()


class Message(Part, frozen=True, kw_only=True):
    """One message of a chat, as it goes to the template."""

    role: Literal["system", "user", "assistant"]
    content: str
    answer_id: int | None = None
    """Of an assistant message: the answer it came from, so that the engine can reuse that answer's own tokens."""


class Fault(Part, frozen=True, kw_only=True):
    """What went wrong, for people (`message`) and for programs (`code`, where it has cases also `detail`)."""

    code: str
    message: str
    help: str = ""
    detail: str = ""
    """Which case of `code` it is: of a `broken_model`, the kind of file (`truncated`, `embedding`, ...)."""


class Device(Part, frozen=True, kw_only=True):
    """A device the engine can see."""

    name: str
    description: str = ""
    id: str = ""
    """Its PCI address, such as `0000:c1:00.0`, where the engine tells it."""
    type: Literal["cpu", "gpu", "igpu", "accel", "other"] = "other"
    free_bytes: int | None = None
    total_bytes: int | None = None


class Placement(Part, frozen=True, kw_only=True):
    """What the engine put on one device, by its own report after the load."""

    name: str
    layers: int = 0
    model_bytes: int | None = None
    kv_bytes: int | None = None
    compute_bytes: int | None = None


class Attention(Part, frozen=True, kw_only=True):
    """Layers of a model that attend alike: `layers` of them."""

    layers: int
    heads: int
    """Query heads."""
    kv_heads: int
    """Key/value heads; several query heads share one."""
    key_length: int
    value_length: int
    """Numbers of one key, and of one value, of one head."""
    window: int | None = None
    """How many tokens back these layers look; None for all."""


class ModelShape(Part, frozen=True, kw_only=True):
    """What of a model one token makes the engine read and compute, from the header of its file."""

    weight_bytes: int
    """Bytes of weights read for one decoded token: of a mixture of experts those of the experts that it uses."""
    body_params: int
    """Weights that every token is multiplied with: without embedding, output head and unused experts."""
    head_params: int
    """Weights of the output head, which only tokens with an output need."""
    attention: tuple[Attention, ...] | None = None
    """None where the model keeps no plain keys and values (latent attention); empty where it keeps none at all."""
    experts: int = 0
    experts_used: int = 0


class ModelFacts(Part, frozen=True, kw_only=True):
    """The loaded model, from its own header and the engine."""

    name: str
    path: str
    size_bytes: int
    params: int | None = None
    quant: str | None = None
    arch: str | None = None
    layers: int | None = None
    context_trained: int | None = None
    template: str = ""
    """Where the chat template comes from: `model`, or the name of the fallback."""
    rolls_back: bool = True
    """False for recurrent and hybrid models, which cannot drop the tail of what they have read."""
    shape: ModelShape | None = None
    """None where the header does not tell."""


class EngineFacts(Part, frozen=True, kw_only=True):
    """How the engine really runs the model; what was asked for is in the settings."""

    backend: str
    build: str
    devices: tuple[Placement, ...] = ()
    layers_offloaded: int | None = None
    layers_total: int | None = None
    threads: int | None = None
    threads_batch: int | None = None
    batch: int | None = None
    ubatch: int | None = None
    flash_attention: bool | None = None
    kv_type_k: str | None = None
    kv_type_v: str | None = None
    context: int | None = None
    sequences: int = 1
    gpu_layers_asked: int | None = None
    """-1 is all."""
    gpu_asked: bool = False
    """The user asked for that number, and it is not the default."""
    flash_attention_asked: bool | None = None
    """None left the choice to the engine."""
    attention_fell_back: bool = False
    """Flash attention was left off because the device of a layer cannot compute it."""
    kv_offload: bool = True
    """Whether the cache was to lie beside its layers, or in main memory."""
    estimated: tuple[Placement, ...] = ()
    """What was worked out before the load: for `CPU` and, all GPUs together, `GPU`."""
    graph_splits: int | None = None
    """Into how many pieces the computation of one token is cut, because parts of it run on different devices."""
    cores: int | None = None
    """Physical cores that the engine may compute on."""


class Step(Part, frozen=True, kw_only=True):
    """How long one computation of `tokens` tokens takes behind `depth` tokens of context: the median of repeats."""

    tokens: int
    depth: int = 0
    took_ns: int


class Ceilings(Part, frozen=True, kw_only=True):
    """What this machine can do with one model, as it was measured."""

    steps: tuple[Step, ...] = ()
    written_ns: int | None = None
    written_depth: int = 0
    """What a token of a real answer took, choosing it and its text included, behind so many tokens on average."""
    read_bytes_per_s: float | None = None
    """How fast all cores together read main memory; None where the model is not in main memory alone."""
    noise: float | None = None
    """How much longer the median repeat of one token took than the first quartile: 0.05 at rest."""
    threads: int | None = None
    layers_offloaded: int | None = None
    """How the engine ran the model when the steps were measured."""
    measured_at: str = ""
    """Wall time, ISO 8601."""


class Divergence(Part, frozen=True, kw_only=True):
    """Where a prompt parts from what the cache holds of the same chat, and why."""

    at: int
    """The first token that differs, from 0."""
    held: int
    """How many tokens of this chat the cache held after its last answer."""
    message: int | None = None
    """The message that this token lies in, from 0, the system message included; None inside the template's own text."""
    role: Literal["system", "user", "assistant"] | None = None
    why: Literal[
        "edited",
        "regenerated",
        "system_changed",
        "reasoning_dropped",
        "trimmed",
        "cannot_roll_back",
        "retokenised",
        "evicted",
    ]
    """`edited`: a message says something else; `regenerated`: an answer was replaced; `reasoning_dropped`: the template
    leaves out the reasoning of earlier answers; `trimmed`: messages are missing; `cannot_roll_back`: the model cannot
    forget only the end of what it read; `retokenised`: the same words became other tokens; `evicted`: another chat
    needed the room."""


class Parts(Part, frozen=True, kw_only=True):
    """What one wall span was spent on; the five add up to it.

    `compute_ns`: llama_decode and synchronise of iterations this answer took part in. `sample_ns`: choosing its tokens.
    `text_ns`: detokenising and bookkeeping for it. `wait_other_ns`: iterations, sampling and text of other answers.
    `idle_ns`: nothing ran.
    """

    compute_ns: int = 0
    sample_ns: int = 0
    text_ns: int = 0
    wait_other_ns: int = 0
    idle_ns: int = 0

    def __add__(self, other: Parts) -> Parts:
        return Parts(
            compute_ns=self.compute_ns + other.compute_ns,
            sample_ns=self.sample_ns + other.sample_ns,
            text_ns=self.text_ns + other.text_ns,
            wait_other_ns=self.wait_other_ns + other.wait_other_ns,
            idle_ns=self.idle_ns + other.idle_ns,
        )

    @property
    def total_ns(self) -> int:
        """The span that the five parts cover, in nanoseconds."""
        return self.compute_ns + self.sample_ns + self.text_ns + self.wait_other_ns + self.idle_ns


# --- the session and its engine ---------------------------------------------------------------------------------------


class SessionStarted(Fact, frozen=True, kw_only=True, tag="session_started"):
    """The first fact of a sitting: of a session, or of one that is taken up again later under the same `session`.

    The stamps of another sitting may be of another boot and have another origin. The only wall time of a sitting is
    `started_at` (ISO 8601 with offset).
    """

    session: str
    started_at: str
    app_version: str
    schema: int = SCHEMA
    record: Words = "full"
    """`no-text` in a record whose words were left out."""


class Renamed(Fact, frozen=True, kw_only=True, tag="renamed"):
    """The user gave the session a title; an empty one takes it back. It may lie outside any sitting."""

    title: str


class EngineStarting(Fact, frozen=True, kw_only=True, tag="engine_starting"):
    """A worker process is being spawned. `generation` counts workers of this session from 1."""

    generation: int


class EngineReady(Fact, frozen=True, kw_only=True, tag="engine_ready"):
    """A worker said hello; its stamps are shifted by `clock_offset_ns`, known to within `clock_error_ns`."""

    generation: int
    pid: int
    backend: str
    build: str
    python: str = ""
    system_info: str = ""
    gpu_offload: bool = False
    """Whether this build could use a GPU at all."""
    devices: tuple[Device, ...] = ()
    clock_offset_ns: int = 0
    clock_error_ns: int = 0


class EngineEnded(Fact, frozen=True, kw_only=True, tag="engine_ended"):
    """A worker process is gone. `fault` is None when it was asked to go."""

    generation: int
    fault: Fault | None = None
    signal: int | None = None
    exit_code: int | None = None
    stderr_tail: str = ""


class Notice(Fact, frozen=True, kw_only=True, tag="notice"):
    """Something the user should know that is no failure: a fallback template, a CPU-only build, a transformed text."""

    code: str
    message: str
    help: str = ""
    answer_id: int | None = None


# --- a model load -----------------------------------------------------------------------------------------------------


class LoadStarted(Fact, frozen=True, kw_only=True, tag="load_started"):
    """The engine begins to load a model. `load_id` counts loads of this session from 1."""

    load_id: int
    name: str
    path: str
    size_bytes: int


class LoadProgress(Fact, frozen=True, kw_only=True, tag="load_progress"):
    """How far a load is. `done_bytes` are the bytes read so far (stage `file`), `fraction` the engine's own 0..1."""

    load_id: int
    stage: LoadStage
    fraction: float | None = None
    done_bytes: int | None = None
    total_bytes: int | None = None


class LoadEnded(Fact, frozen=True, kw_only=True, tag="load_ended"):
    """The model is ready. The three spans follow each other; `total` is `at_ns` minus the start's."""

    load_id: int
    file_ns: int
    context_ns: int
    warmup_ns: int
    page_cache: PageCache
    cached_fraction: float | None = None
    """How much of the file was in the page cache when the load began, 0..1."""
    major_faults: int | None = None
    model: ModelFacts
    engine: EngineFacts


class LoadFailed(Fact, frozen=True, kw_only=True, tag="load_failed"):
    """The model could not be loaded, or the load was stopped (`fault.code == "cancelled"`)."""

    load_id: int
    fault: Fault


# --- an answer --------------------------------------------------------------------------------------------------------


class Submitted(Fact, frozen=True, kw_only=True, tag="submitted"):
    """The user asked. `at_ns` is the Enter key's own stamp (for `ask`: process entry), not when we got round to it."""

    answer_id: int
    chat_id: int
    prompt: str
    system: str | None = None
    sampler: Sampler
    replaces: int | None = None
    """An earlier answer of this chat whose place this one takes (asked again, or its question was changed): that
    answer, its question and all that followed left the chat when this was submitted."""


class Queued(Fact, frozen=True, kw_only=True, tag="queued"):
    """The engine has the request (`at_ns`: when it was read off the pipe); `behind` are the answers it waits for."""

    answer_id: int
    behind: tuple[int, ...] = ()


class Began(Fact, frozen=True, kw_only=True, tag="began"):
    """The first work on this answer; the end of its queue."""

    answer_id: int
    seed: int | None = None
    """The seed in use, None when greedy."""


class Templated(Fact, frozen=True, kw_only=True, tag="templated"):
    """The chat template was applied between `started_at_ns` and `at_ns`."""

    answer_id: int
    started_at_ns: int
    template: str = "model"


class Tokenised(Fact, frozen=True, kw_only=True, tag="tokenised"):
    """The prompt became `prompt` token ids, of which the first `reused` were found in the KV cache.

    `cached` is how many tokens the chosen sequence held: `cached > reused` means that its tail did not match.
    """

    answer_id: int
    started_at_ns: int
    prompt: int
    reused: int
    cached: int
    context: int
    context_used_others: int = 0
    """KV cells that other sequences hold in the same unified cache."""
    divergence: Divergence | None = None
    """Where it parts from what the sequence held of the same chat; None when nothing was lost, or of another chat."""


class ChunkProgress(Fact, frozen=True, kw_only=True, tag="chunk_progress"):
    """About how far the chunk under way is: `done` of `total` tokens to evaluate, estimated from the nodes computed.

    Told only where a chunk takes so long that its end alone would leave people guessing.
    """

    answer_id: int
    done: int
    total: int


class Prefilled(Fact, frozen=True, kw_only=True, tag="prefilled"):
    """A chunk of the prompt was read; its synchronised end is `at_ns`.

    `done` of `total` tokens are evaluated now (`total` = prompt - reused). `parts` cover the span from the previous
    chunk's end (or from `started_at_ns` for the first) to `at_ns`.
    """

    answer_id: int
    started_at_ns: int
    tokens: int
    done: int
    total: int
    parts: Parts
    shared: bool = False
    """The iteration also held tokens of other answers."""
    major_faults: int | None = None
    cpu_ns: int | None = None
    """Processor time of the engine in this span, all its threads together."""


class Tokens(Fact, frozen=True, kw_only=True, tag="tokens"):
    """Tokens sampled since the last bundle, as columns of one length; `at_ns` is the last one's stamp.

    The parts of token i cover the span from the stamp of token i-1 to its own; for the very first token (`first` 0,
    row 0) from the end of the prefill.
    """

    answer_id: int
    first: int
    """Index of the first token of this bundle in the answer, from 0."""
    ids: tuple[int, ...]
    sampled_at_ns: tuple[int, ...]
    compute_ns: tuple[int, ...]
    sample_ns: tuple[int, ...]
    text_ns: tuple[int, ...]
    wait_other_ns: tuple[int, ...]
    idle_ns: tuple[int, ...]
    reasoning: int = 0
    """How many of these belong to the reasoning, and of earlier ones of which only these made it certain."""
    shared: bool = False


class Text(Fact, frozen=True, kw_only=True, tag="text"):
    """Text was handed over: whole characters, control bytes and all; `at_ns` is when its first character was."""

    answer_id: int
    channel: Channel
    text: str
    withheld: int = 0
    """How many visible characters a record without words left out of `text`."""


class SlowStep(Fact, frozen=True, kw_only=True, tag="slow_step"):
    """A token came much later after the one before than usual; told only of such tokens, with what explains it."""

    answer_id: int
    token: int
    """Its index in the answer, from 0."""
    took_ns: int
    usual_ns: int
    """The running mean of the gaps before it."""
    cpu_ns: int | None = None
    """Processor time of the engine meanwhile, all its threads together."""
    major_faults: int | None = None
    other_tokens: int = 0
    """Tokens of other answers that the engine computed meanwhile."""
    context_used: int = 0
    """Tokens of this answer's sequence in the cache, this one included."""


class Expected(Fact, frozen=True, kw_only=True, tag="expected"):
    """What was expected of an answer once the length of its prompt was known, before any of it was read."""

    answer_id: int
    ttft_ns: int | None = None
    """From the submit to the first token, with what had passed already."""
    decode_tps: float | None = None
    basis: Literal["calibration", "session"]
    """What it rests on: this machine's measured ceilings, or the rates of this session's earlier answers."""


class StopRequested(Fact, frozen=True, kw_only=True, tag="stop_requested"):
    """The user asked to stop this answer."""

    answer_id: int


class Ended(Fact, frozen=True, kw_only=True, tag="ended"):
    """The answer is done: `at_ns` is when the last of its text had been handed over."""

    answer_id: int
    finish_reason: FinishReason
    fault: Fault | None = None
    context_used: int | None = None
    """Tokens of this sequence in the KV cache now; what the next prompt can reuse."""
    parts: Parts | None = None
    """Of an answer that was cut short: what the phase it was cut in was spent on since its last fact."""
    cpu_ns: int | None = None
    """Processor time of the engine from the first token to the last, all its threads together."""


# --- the machine ------------------------------------------------------------------------------------------------------


class Sample(Fact, frozen=True, kw_only=True, tag="sample"):
    """One reading of one probe. `values` by name with the unit in the name; what could not be read is in `missing`."""

    probe: str
    took_ns: int
    values: dict[str, float]
    missing: dict[str, str] = {}
    labels: dict[str, str] = {}
    """What is no number: names and ids of devices. All of them when one changed, none while all are as before."""
    cpu_ns: int = 0
    """Processor time that the reading itself cost; `took_ns` also holds the waiting for a driver."""


class Measured(Fact, frozen=True, kw_only=True, tag="measured"):
    """One computation of a calibration: `took_ns` of every repeat, in the order in which they ran."""

    measure_id: int
    tokens: int
    depth: int
    took_ns: tuple[int, ...]
    """Empty where it did not fit into the context, or failed."""


class Calibrated(Fact, frozen=True, kw_only=True, tag="calibrated"):
    """What this machine can do with the model of this path; measured now, or read from an earlier calibration."""

    path: str
    ceilings: Ceilings


AnyFact = (
    SessionStarted
    | Renamed
    | EngineStarting
    | EngineReady
    | EngineEnded
    | Notice
    | LoadStarted
    | LoadProgress
    | LoadEnded
    | LoadFailed
    | Submitted
    | Queued
    | Began
    | Templated
    | Tokenised
    | ChunkProgress
    | Prefilled
    | Tokens
    | Text
    | SlowStep
    | Expected
    | StopRequested
    | Ended
    | Sample
    | Measured
    | Calibrated
)


def shift(fact: AnyFact, offset_ns: int) -> AnyFact:
    """Return the fact with every stamp (`*at_ns`) moved by `offset_ns`; spans stay as they are."""
    if offset_ns == 0:
        return fact
    moved: dict[str, Any] = {}
    for name in fact.__struct_fields__:
        if name.endswith("at_ns"):
            stamp = getattr(fact, name)
            moved[name] = tuple(s + offset_ns for s in stamp) if isinstance(stamp, tuple) else stamp + offset_ns
    return msgspec.structs.replace(fact, **moved)
