"""About what a question would take, in words."""

from __future__ import annotations

from math import log10

from homeai import units
from homeai.explain.ahead import Ahead


def ahead_words(found: Ahead) -> tuple[str, str, str]:
    """`about 12 new tokens, 1,200 reused, first token in about 0.1 s`, and the same in ever fewer words."""
    about = roughly(found.new_tokens)
    new, tokens = units.counted(about, "new token"), units.counted(about, "token")
    whole = found.new_tokens + found.reused_tokens
    if found.context is not None and whole > found.context:
        too_long = (
            f"about {units.count(roughly(whole))} tokens, more than the context of {units.count(found.context)} holds",
            f"too long: about {units.count(roughly(whole))} tokens",
        )
        return too_long[0], *too_long
    reused = f", {units.count(roughly(found.reused_tokens))} reused" if found.reused_tokens else ""
    if found.wait_ns is None:
        return f"about {new}{reused}", f"about {new}", f"about {tokens}"
    wait = _about(found.wait_ns)
    first = f"first token in about {wait}"
    return f"about {new}{reused}, {first}", f"about {new}, {first}", f"about {tokens}, {wait}"


def roughly(number: int) -> int:
    """Two figures of it: more is not known."""
    step: int = 10 ** max(0, int(log10(max(1, number))) - 1)
    return round(number / step) * step


def _about(span_ns: int) -> str:
    seconds = span_ns / 1e9
    if seconds < 9.95:
        return f"{max(0.1, seconds):.1f} s"
    return f"{seconds:.0f} s" if seconds < 99.5 else units.span(round(seconds) * 10**9)
