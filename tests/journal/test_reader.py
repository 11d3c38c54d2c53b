"""Reading a record back: what is whole comes out, what is not is counted, and no stamp makes an impossible time."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest
from msgspec.structs import replace

from homeai.errors import HomeaiError
from homeai.events import (
    SCHEMA,
    AnyFact,
    Ended,
    Notice,
    Parts,
    Prefilled,
    Renamed,
    SessionStarted,
    StopRequested,
    Submitted,
    Text,
    Tokens,
)
from homeai.journal import reader
from homeai.journal.reader import Damage, close_interrupted
from homeai.journal.stamps import YEAR_NS
from homeai.jsonline import encode
from homeai.metrics.contract import contract
from homeai.metrics.fold import fold_all
from homeai.metrics.phases import phases
from homeai.metrics.view import view
from tests.journal.records import facts_of, file_of, lines_of
from tests.metrics import stories
from tests.metrics.stories import ms
from widgets.figures import closing

FACTS = stories.whole_session()
TEXT = Text(at_ns=ms(20_000), answer_id=1, channel="answer", text='Grüße {"kind":"text"} \x00 \n')

MARRED = replace(TEXT, text=TEXT.text.replace("ü", "\ufffd"))


@pytest.mark.parametrize(
    ("content", "back", "counts"),
    [
        (lines_of(FACTS)[:-17], FACTS[:-1], {"torn": 1}),
        (lines_of(FACTS)[:-1], FACTS, {}),
        (encode(TEXT)[:-1] + encode(TEXT), [TEXT, TEXT], {"glued": 1}),
        (encode(TEXT)[:-1] * 3 + b"\n" + encode(TEXT), [TEXT] * 4, {"glued": 1}),
        (encode(TEXT)[:20] + encode(TEXT), [TEXT], {"torn": 1}),
        (encode(TEXT)[:-5] + encode(TEXT)[:-1] + encode(TEXT)[:9] + b"\n" + encode(TEXT), [TEXT, TEXT], {"torn": 2}),
        (encode(TEXT) + b"\0" * 4096 + encode(TEXT), [TEXT, TEXT], {"nul": 1}),
        (encode(TEXT)[:30] + b"\0" * 9 + encode(TEXT)[40:], [], {"nul": 1, "torn": 2}),
        (
            encode(TEXT).replace("ü".encode(), b"\xfc"),
            [replace(TEXT, text=TEXT.text.replace("ü", "\ufffd"))],
            {"utf8": 1},
        ),
        (b"\xff\xfe\n" + encode(TEXT), [TEXT], {"torn": 1}),
        (encode(TEXT)[:-1] + b"trailing\n", [TEXT], {"torn": 1}),
        (b"\xef\xbb\xbf" + encode(TEXT), [TEXT], {"torn": 1}),
        (b'[1, 2]\n"words"\n7\n{"a": 1}\n' + encode(TEXT), [TEXT], {"foreign": 4}),
        (b'{"kind": 5}\n{"kind":"text","at_ns":"soon"}\n' + encode(TEXT), [TEXT], {"foreign": 2}),
        (b"[" * 100_000 + b"\n" + encode(TEXT), [TEXT], {"torn": 1}),
        (b'{"kind":"' * 20_000 + encode(TEXT), [TEXT], {"torn": 20_000}),
        (b'{"kind":"sample","at_ns":1,"probe":"x","took_ns":1,"values":{"a":NaN}}\n', [], {"torn": 1}),
        (encode(TEXT).replace(b"\n", b"\r\n") + b"\r\n \n" + encode(TEXT), [TEXT, TEXT], {}),
        (b"", [], {}),
    ],
    ids=[f"damage-{number}" for number in range(19)],
)
def test_what_is_whole_comes_out(tmp_path: Path, content: bytes, back: list[AnyFact], counts: dict[str, int]) -> None:
    found, reading = facts_of(file_of(tmp_path / "r.jsonl", content))
    assert found == back
    assert dict(reading.damage.counts) == counts


def test_halves_of_characters_become_one_or_a_sign_for_none(tmp_path: Path) -> None:
    halves = rb'{"kind":"text","at_ns":1,"answer_id":1,"channel":"answer","text":"x\ud83d"}'
    whole = rb'{"kind":"text","at_ns":1,"answer_id":1,"channel":"answer","text":"\ud83e\udd99"}'
    found, reading = facts_of(file_of(tmp_path / "r.jsonl", halves + b"\n" + whole))
    assert [fact.text for fact in found if isinstance(fact, Text)] == ["x\ufffd", "🦙"]
    assert dict(reading.damage.counts) == {"utf8": 1}


def test_kinds_of_a_later_version_are_passed_over_and_no_damage(tmp_path: Path) -> None:
    started = replace(stories.SESSION, schema=SCHEMA + 1)
    content = encode(started) + b'{"kind":"dreamt","at_ns":1,"of":{"kind":"sheep"}}\n{"kind":"dreamt"}\n' + encode(TEXT)
    found, reading = facts_of(file_of(tmp_path / "r.jsonl", content))
    assert found == [started, TEXT]
    assert (dict(reading.skipped), reading.schema, reading.is_newer) == ({"dreamt": 2}, SCHEMA + 1, True)
    assert not reading.damage


def test_new_fields_of_a_known_kind_are_passed_over(tmp_path: Path) -> None:
    content = encode(TEXT).replace(b'"text":', b'"mood":{"kind":"x"},"text":')
    found, reading = facts_of(file_of(tmp_path / "r.jsonl", content))
    assert (found, bool(reading.damage), reading.is_newer) == ([TEXT], False, False)


def test_damage_is_one_sentence_and_a_place(tmp_path: Path) -> None:
    content = encode(TEXT) + b"\0\0" + encode(TEXT)[:-9] + b"\nx\n" + encode(TEXT)
    _, reading = facts_of(file_of(tmp_path / "r.jsonl", content))
    assert reading.damage == Damage({"nul": 1, "torn": 2}, len(encode(TEXT)))
    assert reading.damage.sentence == (
        "The record of this session is damaged: 1 block of zeros, 2 records are cut off. Everything else was read."
    )
    assert Damage().sentence == ""


def test_lines_of_megabytes_are_whole(tmp_path: Path) -> None:
    long = replace(TEXT, text="long " * 2_000_000)
    found, reading = facts_of(file_of(tmp_path / "r.jsonl", encode(long) + encode(TEXT)))
    assert found == [long, TEXT]
    assert not reading.damage


def test_a_line_without_end_is_passed_over_in_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "LONGEST_LINE", 4_000_000)
    path = file_of(tmp_path / "r.jsonl", encode(TEXT) + b"x" * 30_000_000 + b"\n" + encode(TEXT))
    tracemalloc.start()
    try:
        found, reading = facts_of(path)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == [TEXT, TEXT]
    assert dict(reading.damage.counts) == {"oversized": 1}
    assert peak_bytes < 15_000_000


def test_zeros_without_end_are_passed_over_with_the_record_behind_them(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with path.open("wb") as file:
        file.write(encode(TEXT))
        file.truncate(200_000_000)
        file.seek(200_000_000)
        file.write(encode(TEXT))
    tracemalloc.start()
    try:
        found, _ = facts_of(path)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == [TEXT, TEXT]
    assert peak_bytes < 15_000_000


def test_no_record_at_all_is_told(tmp_path: Path) -> None:
    with pytest.raises(HomeaiError, match="cannot be read"):
        list(reader.read(tmp_path / "none.jsonl"))
    with pytest.raises(HomeaiError, match="cannot be read"):
        facts_of(tmp_path)


# --- stamps -----------------------------------------------------------------------------------------------------------


def _read(tmp_path: Path, *facts: AnyFact | bytes) -> tuple[list[AnyFact], reader.Reading]:
    lines = [fact if isinstance(fact, bytes) else encode(fact) for fact in facts]
    return facts_of(file_of(tmp_path / "r.jsonl", b"".join(lines)))


@pytest.mark.parametrize("stamp", [-(10**19), -1 - 3_600 * 10**9, 2 * YEAR_NS, 10**18, 2**63, 10**30])
def test_stamps_that_cannot_be_become_the_last_that_could(tmp_path: Path, stamp: int) -> None:
    begun = stories.whole_session()
    broken = encode(stories.ended(11_424.7)).replace(str(ms(11_424.7)).encode(), str(stamp).encode())
    found, reading = _read(tmp_path, *begun[:-1], broken, TEXT)
    assert found[-2].at_ns == begun[-2].at_ns
    assert found[-1] == TEXT
    assert dict(reading.damage.counts) == {"stamps": 1}
    total = phases(fold_all(found).answers[1])["total"].span.value
    assert total is not None
    assert 0 <= total < 60e9


def test_columns_and_parts_with_impossible_times_are_mended_in_place(tmp_path: Path) -> None:
    bundle = stories.tokens(0, [3314, 3315, 3316])
    broken = replace(bundle, sampled_at_ns=(ms(3314), 10**19, ms(3316)), compute_ns=(-(10**12), *bundle.compute_ns[1:]))
    parts = Parts(compute_ns=10**18, text_ns=5)
    chunk = Prefilled(at_ns=5, answer_id=1, started_at_ns=-(10**18), tokens=1, done=1, total=1, parts=parts)
    found, reading = _read(tmp_path, *stories.session_facts(), broken, chunk)
    assert found[-2] == replace(
        bundle, sampled_at_ns=(ms(3314), ms(3316), ms(3316)), compute_ns=(0, *bundle.compute_ns[1:])
    )
    assert found[-1] == replace(chunk, started_at_ns=5, parts=Parts(text_ns=5))
    assert dict(reading.damage.counts) == {"stamps": 2}


def test_a_wrong_stamp_of_the_beginning_does_not_spoil_the_rest(tmp_path: Path) -> None:
    rest = [replace(fact, at_ns=fact.at_ns + 10**16) for fact in stories.session_facts()[1:]]
    for wrong in (0, 5 * 10**17):
        found, _ = _read(tmp_path, replace(stories.SESSION, at_ns=wrong), *rest)
        assert found[1:] == rest


def test_each_sitting_has_its_own_clock(tmp_path: Path) -> None:
    """The machine was restarted between them: stamps of the second are smaller by years."""
    first = replace(stories.SESSION, at_ns=3 * YEAR_NS)
    second = replace(stories.SESSION, at_ns=ms(3), started_at="2026-12-01T08:00:00+01:00")
    facts: list[AnyFact] = [
        first,
        Notice(at_ns=3 * YEAR_NS + 5, code="x", message="x"),
        Renamed(at_ns=ms(9), title="A title"),
        second,
        Notice(at_ns=ms(4), code="x", message="x"),
    ]
    found, reading = _read(tmp_path, *facts)
    assert [fact for fact in found if not isinstance(fact, Renamed)] == [f for f in facts if not isinstance(f, Renamed)]
    assert {*reading.damage.counts} <= {"stamps"}


# --- interrupted answers ----------------------------------------------------------------------------------------------


def test_an_answer_without_its_end_was_interrupted_and_keeps_what_it_said() -> None:
    facts = stories.died_while_writing()[:-1]
    state = fold_all(close_interrupted(facts))
    answer = state.answers[1]
    assert answer.ended == Ended(at_ns=facts[-1].at_ns, answer_id=1, finish_reason="error", fault=reader.INTERRUPTED)
    assert answer.answer_text.startswith("w0 w7 ")
    written = contract(state, 1)
    assert written["error"] == {"code": "interrupted", "message": "homeai ended in the middle of this answer."}
    assert written["phases_ms"]["decode"] == pytest.approx(49 * 66)
    assert written["missing"]["phases_ms.finish"] == "interrupted in decode", "the model did not fail"
    assert closing(view(state, 1, 0)).plain.startswith("interrupted · ")


def test_a_whole_record_is_passed_on_as_it_is() -> None:
    facts = [*FACTS, StopRequested(at_ns=1, answer_id=7), Notice(at_ns=1, code="x", message="x", answer_id=8), TEXT]
    assert list(close_interrupted(facts)) == facts


def test_an_answer_is_closed_before_the_next_sitting() -> None:
    second = SessionStarted(at_ns=ms(3), session="s-1", started_at="2026-12-01T08:00:00+01:00", app_version="1")
    facts = [*stories.session_facts(), stories.submitted(1000), second, second, stories.submitted(900, 2)]
    kinds = [type(fact) for fact in close_interrupted(facts)][len(stories.session_facts()) :]
    assert kinds == [Submitted, Ended, SessionStarted, SessionStarted, Submitted, Ended]


def test_an_answer_whose_beginning_was_lost_is_closed_too() -> None:
    bundle = stories.tokens(0, [3314], answer_id=5)
    assert isinstance(bundle, Tokens)
    ended = list(close_interrupted([bundle]))[-1]
    assert isinstance(ended, Ended)
    assert (ended.answer_id, ended.at_ns) == (5, bundle.at_ns)


def test_the_record_is_plain_json(tmp_path: Path) -> None:
    for line in lines_of(FACTS).splitlines():
        assert json.loads(line)["kind"]
