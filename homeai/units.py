"""Quantities as people read them: one format for a kind of quantity, the same on every surface.

Three significant figures for spans and rates, thousands with a comma, binary units for memory. Missing is "n/a".
"""

from __future__ import annotations

from math import floor, log10

MISSING = "n/a"

_NS_PER_MS = 1_000_000


def ms(span_ns: int | None) -> float | None:
    """Nanoseconds to milliseconds, for JSON and CSV; None stays None."""
    return None if span_ns is None else span_ns / _NS_PER_MS


def span(span_ns: float | None) -> str:
    """A span in the unit that suits it: `0.40 ms`, `66.1 ms`, `2.31 s`, `74.2 s`, `3 min 05 s`, `2 h 07 min`."""
    if span_ns is None:
        return MISSING
    if span_ns < 0:
        return "-" + span(-span_ns)
    in_ms = span_ns / _NS_PER_MS
    if in_ms < 0.005:
        return "0 ms"
    # The limits are those of the rounded figure, so that 9.996 ms is "10.0 ms" and never "10.00 ms".
    if in_ms < 9.995:
        return f"{in_ms:.2f} ms"
    if in_ms < 99.95:
        return f"{in_ms:.1f} ms"
    if in_ms < 999.5:
        return f"{in_ms:.0f} ms"
    seconds = in_ms / 1000
    if seconds < 9.995:
        return f"{seconds:.2f} s"
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min"


def fine(span_ns: float) -> str:
    """A span of which many make a sum: with three figures also below a millisecond, `0.0965 ms` and not `0.10 ms`."""
    in_ms = span_ns / _NS_PER_MS
    if not 1e-4 <= in_ms < 0.9995:
        return span(span_ns)
    return f"{in_ms:.{2 - floor(log10(in_ms))}f} ms"


def rate(per_second: float | None) -> str:
    """A rate in tokens a second: `14.8 tok/s`, `261 tok/s`, `1,050 tok/s`."""
    if per_second is None:
        return MISSING
    return f"{significant(per_second)} tok/s"


def count(number: int | None) -> str:
    """A count with thousands: `1,804`."""
    return MISSING if number is None else f"{number:,}"


def counted(number: int, what: str) -> str:
    """A count of things: `1 new token`, `604 new tokens`."""
    return f"{count(number)} {what}{'' if number == 1 else 's'}"


def size(size_bytes: float | None) -> str:
    """A size in binary units: `512 B`, `92.0 MiB`, `3.10 GiB`."""
    if size_bytes is None:
        return MISSING
    if size_bytes < 1024:
        return f"{size_bytes:.0f} B"
    value = size_bytes / 1024
    units = iter(("KiB", "MiB", "GiB", "TiB"))
    unit = next(units)
    while value >= 999.5 and (larger := next(units, None)):
        value, unit = value / 1024, larger
    return f"{significant(value)} {unit}"


def percent(fraction: float | None) -> str:
    """A share of one as a percentage: `47 %`, `3.1 %`."""
    if fraction is None:
        return MISSING
    value = fraction * 100
    return f"{value:.0f} %" if value >= 9.95 or value == 0 else f"{value:.1f} %"


def significant(value: float) -> str:
    """Three significant figures without an exponent: `0.123`, `14.8`, `261`, `1,050`."""
    magnitude = abs(value)
    if magnitude >= 99.95:
        return f"{value:,.0f}"
    if magnitude >= 9.995:
        return f"{value:.1f}"
    if magnitude >= 0.9995 or magnitude == 0:
        return f"{value:.2f}"
    return f"{value:.3f}"


def minute(told_at: str | None) -> str:
    """The day and the minute of an ISO time, in the time of the place where it was: `2026-11-30 01:50`."""
    return "unknown" if told_at is None else told_at[:16].replace("T", " ")


def printable(text: str) -> str:
    """Text from outside with its control characters as visible stand-ins; tabs and newlines stay.

    C0 controls and DEL become their Unicode pictures (ESC is ␛), C1 controls and the bidirectional overrides, which
    have none, become `<U+009B>`; a lone surrogate becomes U+FFFD.
    """
    if text.isascii() and text.isprintable():
        return text
    return text.translate(_STAND_INS)


_STAND_INS: dict[int, str] = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"},
    0x7F: "\u2421",
    **{
        code: f"<U+{code:04X}>"
        for code in (*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C)
    },
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),
}
