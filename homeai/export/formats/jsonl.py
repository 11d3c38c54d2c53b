"""The record itself, whole lines only: what `homeai import` takes back, without any loss.

One JSON object a line, the facts of `homeai.events` in their order; `homeai schema` prints their JSON Schema. The first
line is `session_started`, with the session's id and the version of the schema. Control characters are escaped, so that
a file that is printed on a terminal stays text.
"""

from __future__ import annotations

from collections.abc import Iterator

from homeai.export.exporting import Format, Options, Source
from homeai.jsonline import encode

_ESCAPED = {
    code: f"\\u{code:04x}"
    for code in (
        *range(0x7F, 0xA0),
        0x061C,
        0x200E,
        0x200F,
        *range(0x2028, 0x202F),
        *range(0x2066, 0x206A),
    )
}
"""What JSON would let pass as it is: C1 controls, which some terminals obey, and what turns the direction of text."""


def _write(source: Source, _options: Options) -> Iterator[bytes]:
    for fact in source.facts():
        line = encode(fact)
        yield line if line.isascii() and b"\x7f" not in line else line.decode().translate(_ESCAPED).encode()


FORMAT = Format("jsonl", "the whole record, for homeai import and for programs", _write)
