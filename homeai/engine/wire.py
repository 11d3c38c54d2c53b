"""One codec for both ends of the pipe: a JSON object a line, commands down, facts and greetings up.

Numbers are 64-bit integers of nanoseconds, text is UTF-8 with lone surrogates replaced before encoding, and a line
never holds a raw newline (JSON escapes it). A line that does not decode raises `WireError`: the other end's fault.
"""

from __future__ import annotations

import msgspec

from homeai.events import AnyFact, Device, Message, Sampler
from homeai.jsonline import encode as encode
from homeai.options import EngineOptions

# --- down: what the session asks of the worker ------------------------------------------------------------------------


class Command(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="do"):
    """A request to the worker."""


class Ping(Command, frozen=True, kw_only=True, tag="ping"):
    """Asks for the worker's clock; answered at once by its reader thread, whatever the engine is doing."""

    token: int


class Load(Command, frozen=True, kw_only=True, tag="load"):
    """Load this model in place of whatever is loaded: one file, or its shards in order."""

    load_id: int
    path: str
    """The first file's path, for people."""
    files: tuple[bytes, ...]
    """The file names to open, in the file system's own bytes: a name need not be text."""
    name: str
    size_bytes: int
    quant: str | None = None
    options: EngineOptions


class Ask(Command, frozen=True, kw_only=True, tag="ask"):
    """Answer the last message of the chat."""

    answer_id: int
    chat_id: int
    messages: tuple[Message, ...]
    sampler: Sampler


class Stop(Command, frozen=True, kw_only=True, tag="stop"):
    """Stop this answer; what it computed stays in the cache."""

    answer_id: int


class Measure(Command, frozen=True, kw_only=True, tag="measure"):
    """Compute this many tokens behind so many others, again and again; what the cache held is lost.

    Answered by a `Measured`; to be asked only while no answer is live.
    """

    measure_id: int
    tokens: int
    depth: int = 0
    repeats: int = 1
    keep: bool = False
    """Leave what is in the cache to the next one, which then need not read it again; a question empties it."""


class Bye(Command, frozen=True, kw_only=True, tag="bye"):
    """End the worker. The end of its standard input means the same."""


AnyCommand = Ping | Load | Ask | Stop | Measure | Bye

# --- up: greetings, beside the facts ----------------------------------------------------------------------------------


class Greeting(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind"):
    """A message that is about the connection, not a fact of the session."""


class Pong(Greeting, frozen=True, kw_only=True, tag="pong"):
    """The worker's clock, read between the arrival of the ping and the sending of this."""

    token: int
    clock_ns: int


class Hello(Greeting, frozen=True, kw_only=True, tag="hello"):
    """The backend is imported and ready for a load."""

    pid: int
    clock_ns: int | None = None
    """The worker's clock as this was sent; the worker program fills it in, not the backend."""
    homeai: str
    python: str
    backend: str
    build: str
    system_info: str = ""
    gpu_offload: bool = False
    devices: tuple[Device, ...] = ()


class Refused(Greeting, frozen=True, kw_only=True, tag="refused"):
    """The worker cannot run: its backend did not import. It ends after this."""

    code: str
    message: str
    help: str = ""


AnyReport = AnyFact | Pong | Hello | Refused


class WireError(Exception):
    """A line that is no message of this protocol."""


_commands = msgspec.json.Decoder(AnyCommand)
_reports = msgspec.json.Decoder(AnyReport)


def decode_command(line: bytes) -> AnyCommand:
    """Read one line of the downward direction; raises `WireError`."""
    try:
        return _commands.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise WireError(str(problem)) from problem


def decode_report(line: bytes) -> AnyReport:
    """Read one line of the upward direction; raises `WireError`."""
    try:
        return _reports.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise WireError(str(problem)) from problem
