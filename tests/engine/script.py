"""The little language of the scripted backend: what it says, how fast, and how it misbehaves.

A script is `key=value` words, from the environment variable HOMEAI_SCRIPT (read as the worker starts) and, over it,
from the prompt itself; other words are ignored, so plain prompts work. For example: `tokens=50 rate=200 die=11 at=20`.

What is said
    tokens=N         tokens with text (default 20, or the pieces of `say`); one end token without text follows
    rate=R           tokens a second (default 500); 0 is as fast as it goes
    prompt=N         prompt tokens (default: the words of the chat; words seen before are `reused`)
    prefill_rate=R   prompt tokens a second (default 50000)
    chunk=N          prompt tokens a chunk (default 256)
    reasoning=N      the first N tokens go to the reasoning channel
    finish=F         stop (default), length, context or error
    load_ms=N        how long a load takes (default 10)
    load_gate=PATH   the load takes as many of its ten steps as the number in this file says, then waits for more
    import_ms=N      how long the import takes (environment only)
    late=N           N more tokens are sent after a stopped answer has ended
    slow=O:V:F       F times as slow with engine option O at value V, such as threads:1:2 (environment only); more
                     of them after commas
    crowd=S          while it is measured it has this share of its threads' processor time (environment only; without
                     it the share is not told)
    say=TEXT         the text, everything up to the end of the script, cut at spaces
    say_file=PATH    the text of this file, line breaks and all, cut at white space; no white space in the path

Misbehaviour, all at the moment `at`: import, load (environment only), prefill (the default) or the index of a token
    noise=N          N lines with ANSI codes to fd 1 and N to fd 2, through the C level
    cry=TEXT         a line to stderr, `_` for spaces: cry=CUDA_error:_out_of_memory
    flood=BYTES      so much to stderr, as fast as it goes
    garbage=N        N lines of nonsense into the protocol
    close=1          closes the protocol's pipe, then hangs
    grandchild=S     leaves a child behind that holds all pipes for S seconds
    fail=1           the load fails with LoadFailed (at=load)
    raise=TEXT       raises RuntimeError(TEXT), `_` for spaces
    missing=NAME     raises ModuleNotFoundError for that package (at=import)
    hang=1           sleeps for ever, deaf to everything
    exit=CODE        ends the process with that code
    die=N            ends it by signal N
    deaf=1           the answer ignores stop and interruption but goes on
    only=O:V         none of it but with engine option O at value V (environment only)
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, NoReturn

from homeai.options import EngineOptions


@dataclass(frozen=True, slots=True)
class Script:
    """One reading of the little language; the fields are its keys."""

    tokens: int | None = None
    rate: float = 500.0
    prompt: int | None = None
    prefill_rate: float = 50_000.0
    chunk: int = 256
    reasoning: int = 0
    finish: str = "stop"
    load_ms: float = 10.0
    load_gate: str = ""
    import_ms: float = 0.0
    late: int = 0
    slow: str = ""
    crowd: float = 0.0
    say: str = ""
    say_file: str = ""
    at: str = "prefill"
    noise: int = 0
    cry: str = ""
    flood: int = 0
    garbage: int = 0
    close: int = 0
    grandchild: float = 0.0
    fail: int = 0
    raises: str = ""
    missing: str = ""
    hang: int = 0
    exit: int = -1
    die: int = 0
    deaf: int = 0
    only: str = ""

    def reread(self, text: str) -> Script:
        """This script with the words of `text` over it. A value of the wrong kind is a ValueError."""
        head, _, say = text.partition("say=")
        values: dict[str, Any] = {"say": say} if say else {}
        kinds = {f.name: _KINDS[str(f.type).split(" ")[0]] for f in fields(self)}
        for key, value in re.findall(r"\b(\w+)=(\S+)", head):
            name = "raises" if key == "raise" else key
            if name in kinds:
                values[name] = kinds[name](value)
        return replace(self, **values)

    def under(self, options: EngineOptions) -> Script:
        """This script as it is for a model loaded with these options."""

        def is_set(option: str, value: str) -> bool:
            return str(getattr(options, option)) == value

        factor = 1.0
        for option, value, times in (each.split(":") for each in self.slow.split(",") if each):
            factor *= float(times) if is_set(option, value) else 1.0
        applies = not self.only or is_set(*self.only.split(":"))
        return replace(
            self,
            rate=self.rate / factor,
            prefill_rate=self.prefill_rate / factor,
            at=self.at if applies else "never",
        )

    def pieces(self) -> list[str]:
        """The texts of the tokens, the end token not counted."""
        own = cut(self.say or (Path(self.say_file).read_text("utf-8") if self.say_file else ""))
        count = self.tokens if self.tokens is not None else len(own) or 20
        return [own[i % len(own)] if own else f"w{i} " for i in range(count)]


def cut(text: str) -> list[str]:
    """The text in tokens: words with the white space after them."""
    return re.findall(r"\S+\s*|\s+", text)


_KINDS: dict[str, Callable[[str], Any]] = {"int": int, "float": float, "str": str}
ENVIRONMENT = Script().reread(os.environ.get("HOMEAI_SCRIPT", ""))


def misbehave(script: Script, moment: str, emit: object = None) -> None:
    """Do what the script wants done at this moment; most of it does not return."""
    if script.at != moment:
        return
    for number in range(script.noise):
        os.write(1, f"\x1b[2J\x1b[31mload_tensors: line {number} on stdout\x1b[0m\n".encode())
        os.write(2, f"\x1b]0;title\x07\x1b[1mload_tensors: line {number} on stderr\x1b[0m\n".encode())
    if script.cry:
        os.write(2, script.cry.replace("_", " ").encode() + b"\n")
    if script.flood:
        line = b"llama_kv_cache: " + b"x" * 83 + b"\n"
        for _ in range(script.flood // len(line)):
            os.write(2, line)
    if script.garbage:
        os.write(_protocol_fd(emit), b'llama_model_loader: \xff\x1b[1m {"kind":"nonsense"}\n' * script.garbage)
    if script.grandchild:
        subprocess.Popen(
            [sys.executable, "-c", f"import time; time.sleep({script.grandchild})"],
            close_fds=False,
            pass_fds=() if emit is None else (_protocol_fd(emit),),
        )
    if script.close:
        time.sleep(0.1)  # let out what was emitted: writing to the closed pipe would end the worker
        os.close(_protocol_fd(emit))
        _hang()
    if script.raises:
        raise RuntimeError(script.raises.replace("_", " "))
    if script.missing:
        raise ModuleNotFoundError(f"No module named {script.missing!r}", name=script.missing)
    if script.hang:
        _hang()
    if script.exit >= 0:
        os._exit(script.exit)
    if script.die:
        os.kill(os.getpid(), script.die)
        time.sleep(60)


def _hang() -> NoReturn:
    while True:
        time.sleep(3600)


def _protocol_fd(emit: Any) -> int:
    """The worker's private descriptor, which no honest backend could know."""
    descriptor: int = emit.__self__._write.args[0]
    return descriptor
