"""Whatever is done to the bytes of a record: each record that was not touched is read."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from homeai.events import AnyFact, Sample
from homeai.journal.reader import read
from homeai.journal.writer import Journal
from homeai.jsonline import encode
from homeai.metrics.fold import fold_all
from tests.journal.records import lines_of
from tests.metrics import stories

FACTS: list[AnyFact] = [
    *stories.whole_session()[:18],
    Sample(at_ns=stories.ms(3500), probe="cpu", took_ns=5, values={"all_share": 0.25}, missing={"x_w": 'none {}\\"'}),
    stories.ended(4000),
]
LINES = [encode(fact) for fact in FACTS]
WHOLE = b"".join(LINES)

junk = st.binary(min_size=1, max_size=12) | st.sampled_from(
    [
        b"\0" * 64,
        b"{",
        b"}",
        b'"',
        b"\\",
        b"\n",
        b'{"kind":"',
        b'{"kind":"text","at_ns":1',
        b"\xff",
        b"\r\n",
        b"[",
        b",",
    ]
)
Harm = tuple[str, int, int, bytes]
harms = st.tuples(
    st.sampled_from(["cut", "insert", "overwrite"]), st.integers(0, len(WHOLE)), st.integers(1, 300), junk
)


def harmed(many: list[Harm]) -> tuple[bytes, list[AnyFact]]:
    """The bytes after it, and the facts whose lines (newline apart) nothing touched."""
    pieces = [bytes([byte]) for byte in WHOLE]
    touched = [False] * len(WHOLE)
    inserted: dict[int, bytes] = {}
    for how, at, length, what in many:
        if how == "insert":
            inserted[at] = inserted.get(at, b"") + what
            continue
        what = what if how == "overwrite" else b""
        for place in range(at, min(len(WHOLE), at + (len(what) or length))):
            touched[place] = True
            pieces[place] = what[place - at : place - at + 1]
    content = b"".join(inserted.get(at, b"") + piece for at, piece in enumerate(pieces)) + inserted.get(len(WHOLE), b"")
    whole: list[AnyFact] = []
    start = 0
    for fact, line in zip(FACTS, LINES, strict=True):
        end = start + len(line) - 1
        if not any(touched[start:end]) and not any(start < at < end for at in inserted):
            whole.append(fact)
        start = end + 1
    return content, whole


def is_within(some: list[AnyFact], all_of_them: list[AnyFact]) -> bool:
    """Whether these come among those, in order."""
    rest = iter(all_of_them)
    return all(fact in rest for fact in some)


@settings(max_examples=400, deadline=None)
@given(st.lists(harms, min_size=1, max_size=5), st.sampled_from([1 << 20, 4096, 61]))
def test_every_untouched_record_is_read(many: list[Harm], chunk_bytes: int) -> None:
    content, whole = harmed(many)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.jsonl"
        path.write_bytes(content)
        reading = read(path, chunk_bytes=chunk_bytes)
        found = list(reading)
        assert is_within(whole, found), [fact for fact in whole if fact not in found]
        fold_all(found)
        if content != WHOLE and len(whole) < len(FACTS):
            assert reading.damage or reading.skipped or len(found) >= len(whole)


@settings(max_examples=100, deadline=None)
@given(st.lists(harms, max_size=3), st.integers(0, 400))
def test_and_still_is_after_another_sitting(many: list[Harm], cut: int) -> None:
    content, whole = harmed([*many, ("cut", len(WHOLE) - cut, 1000, b"")])
    later = [stories.SESSION, *stories.whole_answer(2)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.jsonl"
        path.write_bytes(content)
        journal = Journal.continued(path)
        for fact in later:
            journal.put(fact)
        journal.close()
        found = list(read(path))
        assert is_within(whole, found)
        assert found[-len(later) :] == later
        kept = path.with_name(path.name + ".damaged")
        aside = kept.read_bytes()[:-1] if kept.exists() else b""
        # Nothing was destroyed: what is not in the record any more lies beside it.
        assert content in (path.read_bytes()[: len(content)], path.read_bytes()[: len(content) - len(aside)] + aside)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 5000))
def test_it_does_not_matter_how_the_file_is_cut_into_reads(chunk_bytes: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.jsonl"
        path.write_bytes(lines_of(FACTS))
        assert list(read(path, chunk_bytes=chunk_bytes)) == FACTS
