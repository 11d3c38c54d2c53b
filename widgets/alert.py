"""What went wrong, above the box for the question."""

from __future__ import annotations

from textual.content import Content

from homeai.events import Fault
from widgets.figures import MUTED, STRONG
from widgets.foreign import on_one_line, shown

MOST = 8
"""Lines of an alert; the engine's last words get what is left of them, at most two."""


def alert_lines(fault: Fault, width: int, tail: str = "") -> list[Content]:
    """What went wrong, what to do, and the last words of the engine where it left some."""
    lines = Content.assemble(("✗ ", "bold $error"), (on_one_line(fault.message), STRONG)).wrap(max(10, width))
    if fault.help:
        lines += [Content.assemble("  ", line) for line in Content(on_one_line(fault.help)).wrap(max(10, width - 2))]
    room = min(2, MOST - len(lines))
    for line in _last_words(tail)[-room:] if room > 0 else ():
        lines.append(Content.styled(f"  {shown(line)}", MUTED).truncate(width, ellipsis=True))
    return lines[:MOST]


def _last_words(tail: str) -> list[str]:
    """What the engine itself wrote last; the dump that Python adds when a process dies says nothing to its user."""
    dump = (
        "Fatal Python error",
        "Current thread",
        "Thread 0x",
        "  File ",
        "Extension modules",
        "Stack (",
        "Python runtime state",
    )
    return [line for line in tail.splitlines() if line.strip() and not line.startswith(dump)]
