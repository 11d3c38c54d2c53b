"""The codec: every message survives the pipe, whatever text is inside, and stamps shift while spans do not."""

from __future__ import annotations

import typing

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeai import events
from homeai.engine import wire

TOKENS = events.Tokens(
    at_ns=5,
    answer_id=1,
    first=0,
    ids=(7, 8),
    sampled_at_ns=(4, 5),
    compute_ns=(1, 2),
    sample_ns=(1, 1),
    text_ns=(1, 1),
    wait_other_ns=(0, 0),
    idle_ns=(0, 0),
)


def _strategy(kind: typing.Any) -> st.SearchStrategy[typing.Any]:
    """Build instances of a struct from its own type hints, so that a new fact is covered the day it is written."""
    hints = typing.get_type_hints(kind)
    fields = {f.encode_name: f for f in msgspec.structs.fields(kind)}
    return st.builds(kind, **{name: _value(hints[name]) for name in fields})


def _value(hint: typing.Any) -> st.SearchStrategy[typing.Any]:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _strategy(hint)
    if origin is typing.Literal:
        return st.sampled_from(args)
    if origin is tuple:
        return st.lists(_value(args[0]), max_size=3).map(tuple)
    if origin is dict:
        return st.dictionaries(_value(args[0]), _value(args[1]), max_size=3)
    if args:
        return st.one_of([_value(arg) for arg in args])
    plain: dict[typing.Any, st.SearchStrategy[typing.Any]] = {
        int: st.integers(-(2**63), 2**63 - 1),
        float: st.floats(allow_nan=False, allow_infinity=False),
        bool: st.booleans(),
        str: st.text(),
        bytes: st.binary(),
        type(None): st.none(),
    }
    return plain[hint]


any_report = st.one_of([_strategy(kind) for kind in typing.get_args(wire.AnyReport)])
any_command = st.one_of([_strategy(kind) for kind in typing.get_args(wire.AnyCommand)])


@given(any_report)
def test_reports_come_back_as_they_were_sent(report: wire.AnyReport) -> None:
    line = wire.encode(report)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert wire.decode_report(line) == report


@given(any_command)
def test_commands_come_back_as_they_were_sent(command: wire.AnyCommand) -> None:
    assert wire.decode_command(wire.encode(command)) == command


@given(st.text(st.characters(), max_size=20), st.sampled_from(["\ud83d", "\udc81", "x\ud83d\ude00 y"]))
def test_lone_surrogates_never_break_the_line(text: str, broken: str) -> None:
    message = events.Text(at_ns=1, answer_id=1, channel="answer", text=text + broken)
    back = wire.decode_report(wire.encode(message))
    assert isinstance(back, events.Text)
    back.text.encode()
    assert back.text.startswith(text) or "\ufffd" in back.text


def test_a_surrogate_pair_in_two_halves_becomes_its_character() -> None:
    message = events.Text(at_ns=1, answer_id=1, channel="answer", text="x\ud83d\ude00 y\udc81")
    back = wire.decode_report(wire.encode(message))
    assert isinstance(back, events.Text)
    assert back.text == "x😀 y\ufffd"


@pytest.mark.parametrize(
    "line", [b"", b"{", b"null", b'{"kind":"nonsense"}', b'{"kind":"text"}', b"\xff\xfe", b"llama: hi\n"]
)
def test_nonsense_is_a_wire_error(line: bytes) -> None:
    with pytest.raises(wire.WireError):
        wire.decode_report(line)
    with pytest.raises(wire.WireError):
        wire.decode_command(line)


def test_shift_moves_stamps_and_leaves_spans() -> None:
    moved = events.shift(TOKENS, 100)
    assert isinstance(moved, events.Tokens)
    assert (moved.at_ns, moved.sampled_at_ns) == (105, (104, 105))
    assert (moved.compute_ns, moved.ids) == (TOKENS.compute_ns, TOKENS.ids)


@given(any_report, st.integers(-(10**18), 10**18))
def test_shifting_back_gives_the_same_fact(report: wire.AnyReport, offset_ns: int) -> None:
    if isinstance(report, events.Fact):
        assert events.shift(events.shift(report, offset_ns), -offset_ns) == report
