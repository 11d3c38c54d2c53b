"""Quantities as people read them."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from homeai import units

MS = 1_000_000
S = 1000 * MS
MIN = 60 * S
HOUR = 60 * MIN


@pytest.mark.parametrize(
    ("span_ns", "shown"),
    [
        (0, "0 ms"),
        (1, "0 ms"),
        (4_999, "0 ms"),
        (5_000, "0.01 ms"),
        (400_000, "0.40 ms"),
        (9_994_999, "9.99 ms"),
        (9_995_000, "10.0 ms"),
        (66_100_000, "66.1 ms"),
        (99_949_999, "99.9 ms"),
        (99_950_000, "100 ms"),
        (999_499_999, "999 ms"),
        (999_500_000, "1.00 s"),
        (2_310_000_000, "2.31 s"),
        (9_994_999_999, "9.99 s"),
        (9_995_000_000, "10.0 s"),
        (74_200 * MS, "74.2 s"),
        (99_949 * MS, "99.9 s"),
        (99_950 * MS, "1 min 40 s"),
        (3 * MIN + 5 * S, "3 min 05 s"),
        (HOUR - 600 * MS, "59 min 59 s"),
        (HOUR - 400 * MS, "1 h 00 min"),
        (2 * HOUR + 7 * MIN, "2 h 07 min"),
        (2 * HOUR - 20 * S, "2 h 00 min"),
        (100 * HOUR, "100 h 00 min"),
        (-2_310_000_000, "-2.31 s"),
        (None, "n/a"),
    ],
)
def test_spans(span_ns: int | None, shown: str) -> None:
    assert units.span(span_ns) == shown


@pytest.mark.parametrize(
    ("per_second", "shown"),
    [
        (0.0, "0.00 tok/s"),
        (0.1234, "0.123 tok/s"),
        (9.994, "9.99 tok/s"),
        (9.995, "10.0 tok/s"),
        (14.796, "14.8 tok/s"),
        (99.94, "99.9 tok/s"),
        (99.95, "100 tok/s"),
        (261.47, "261 tok/s"),
        (1049.6, "1,050 tok/s"),
        (None, "n/a"),
    ],
)
def test_rates(per_second: float | None, shown: str) -> None:
    assert units.rate(per_second) == shown


@pytest.mark.parametrize(
    ("size_bytes", "shown"),
    [
        (0, "0 B"),
        (512, "512 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB"),
        (999 * 1024, "999 KiB"),
        (1000 * 1024, "0.977 MiB"),
        (1024 * 1024, "1.00 MiB"),
        (98_362_432, "93.8 MiB"),
        (3_328_599_654, "3.10 GiB"),
        (24 * 1024**3, "24.0 GiB"),
        (5 * 1024**4, "5.00 TiB"),
        (5000 * 1024**4, "5,000 TiB"),
        (None, "n/a"),
    ],
)
def test_sizes(size_bytes: int | None, shown: str) -> None:
    assert units.size(size_bytes) == shown


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0, "0 %"), (0.0312, "3.1 %"), (0.0994, "9.9 %"), (0.0995, "10 %"), (0.47, "47 %"), (1.0, "100 %"), (None, "n/a")],
)
def test_shares(share: float | None, shown: str) -> None:
    assert units.percent(share) == shown


def test_counts_and_milliseconds() -> None:
    assert (units.count(0), units.count(1804), units.count(None)) == ("0", "1,804", "n/a")
    assert (units.ms(0), units.ms(2_310_500_000), units.ms(None)) == (0.0, 2310.5, None)
    assert isinstance(units.ms(0), float)


@given(st.integers(0, 10**15))
@example(9_995_000)
def test_a_shown_span_is_never_off_by_more_than_its_last_digit(span_ns: int) -> None:
    shown = units.span(span_ns)
    if match := re.fullmatch(r"([\d.]+) (ms|s)", shown):
        digits = len(match[1].partition(".")[2])
        unit = MS if match[2] == "ms" else S
        back, step = float(match[1]) * unit, unit / 10**digits
    elif match := re.fullmatch(r"(\d+) min (\d\d) s", shown):
        back, step = int(match[1]) * MIN + int(match[2]) * S, S
    else:
        match = re.fullmatch(r"(\d+) h (\d\d) min", shown)
        assert match is not None, shown
        back, step = int(match[1]) * HOUR + int(match[2]) * MIN, MIN
    assert abs(back - span_ns) <= step * 0.5001 or shown == "0 ms"


@given(st.integers(0, 10**15), st.integers(0, 10**15))
def test_spans_use_at_most_three_figures_and_never_shrink(one: int, other: int) -> None:
    shown = units.span(one)
    if " min" not in shown and " h" not in shown:
        assert len(re.sub(r"\D", "", shown).lstrip("0")) <= 3
    smaller, larger = sorted((one, other))
    order = {" ms": 0, " s": 1}
    unit_of = [next((order[unit] for unit in order if units.span(ns).endswith(unit)), 2) for ns in (smaller, larger)]
    if " min" not in units.span(smaller) and " min" not in units.span(larger):
        assert unit_of[0] <= unit_of[1]


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain text, 12 ms", "plain text, 12 ms"),
        ("tab\tand\nnewline", "tab\tand\nnewline"),
        ("\x1b[2J", "␛[2J"),
        ("\x1b]0;X\x07", "␛]0;X␇"),
        ("\x1b]52;c;aGk=\x07", "␛]52;c;aGk=␇"),
        ("\x1b]8;;http://x\x1b\\here", "␛]8;;http://x␛\\here"),
        ("\x1bc", "␛c"),
        ("\x9b31m", "<U+009B>31m"),
        ("\b" * 20, "␈" * 20),
        ("a\rb", "a␍b"),
        ("\x00\x7f", "␀␡"),
        ("user\u202egpj.exe", "user<U+202E>gpj.exe"),
        ("\u2066x\u2069", "<U+2066>x<U+2069>"),
        ("half \ud83e", "half \ufffd"),
        ("é 表 👩‍🚒 🏳️‍🌈 تم", "é 表 👩‍🚒 🏳️‍🌈 تم"),
    ],
)
def test_text_from_outside_is_made_visible(raw: str, shown: str) -> None:
    assert units.printable(raw) == shown


@given(st.text(st.characters(), max_size=50))
def test_no_control_character_gets_through(text: str) -> None:
    shown = units.printable(text)
    assert not any((ord(c) < 0x20 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0 for c in shown)
    assert not any(0x202A <= ord(c) <= 0x202E or 0x2066 <= ord(c) <= 0x2069 for c in shown)
    shown.encode()
    assert units.printable(shown) == shown


@pytest.mark.parametrize(
    ("span_ns", "shown"),
    [
        (96_530, "0.0965 ms"),
        (237_000, "0.237 ms"),
        (950, "0.000950 ms"),
        (3_824_000, "3.82 ms"),
        (2.3e9, "2.30 s"),
        (0, "0 ms"),
    ],
)
def test_a_span_of_which_many_make_a_sum_has_three_figures(span_ns: float, shown: str) -> None:
    """604 tokens at 10,359 a second are 58.3 ms, and 604 x 0.0965 ms are; 604 x 0.10 ms are not."""
    assert units.fine(span_ns) == shown
