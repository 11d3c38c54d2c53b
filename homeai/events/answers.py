"""Facts of an answer, from the question to its end."""

from __future__ import annotations

from typing import Literal

from homeai.events.base import Fact, Fault, Part

FinishReason = Literal["stop", "length", "context", "cancelled", "error"]
Channel = Literal["answer", "reasoning"]


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


TOKEN_COLUMNS = ("ids", "sampled_at_ns", "compute_ns", "sample_ns", "text_ns", "wait_other_ns", "idle_ns")
"""The columns of `Tokens`."""


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


WorkFact = (
    Queued
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
)
AnswerFact = Submitted | WorkFact
