"""One answer of a session in every format: its figures are those it has among the others, and nothing else is in it."""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace

from homeai.errors import UsageError
from homeai.events import AnyFact, Sample, Submitted
from homeai.explain.contract import explained_contract
from homeai.export import Options, export, save
from homeai.export.exporting import formats
from homeai.journal.entries import Recorded, recorded
from homeai.journal.reader import read
from homeai.metrics.contract import contract
from tests.export.sessions import conversation, kept
from tests.metrics import stories
from tests.metrics.stories import ms
from tests.metrics.test_laws import records

EVERY = sorted(formats())
SAID = [("Wherefore", "Therefore"), ("Whither", "Thither"), ("Whence", "Thence")]


def text_of(session: Recorded, format_id: str, options: Options) -> str:
    return b"".join(export(session, format_id, options)).decode()


def alone(session: Recorded, answer_id: int, folder: Path) -> Recorded:
    """The session that another machine takes in from the record of one answer."""
    path = folder / f"alone-{answer_id}.jsonl"
    path.write_bytes(b"".join(export(session, "jsonl", Options(answer_id=answer_id))))
    return recorded(path)


@pytest.mark.parametrize("redact", [False, True])
@pytest.mark.parametrize("name", EVERY)
def test_nothing_of_the_others_is_in_it(name: str, redact: bool, tmp_path: Path) -> None:
    session = kept(tmp_path, conversation(SAID, title="Entitled", system="Systemic"))
    written = text_of(session, name, Options(answer_id=2, redact=redact))
    for word in ("Whither", "Thither", "Entitled", "Systemic"):
        if name != "csv" or word != "Entitled":  # a table has no title
            assert (word in written) != redact
    for word in ("Wherefore", "Therefore", "Whence", "Thence"):
        assert word not in written


@pytest.mark.parametrize("name", ["html", "md"])
def test_without_a_title_of_the_users_it_is_called_by_its_own_question(name: str, tmp_path: Path) -> None:
    session = kept(tmp_path, conversation(SAID))
    assert session.entry.title == "Wherefore"
    written = text_of(session, name, Options(answer_id=2))
    assert "Wherefore" not in written
    assert written.count("Whither") == (3 if name == "html" else 2)
    path = save(session, name, tmp_path, Options(answer_id=2))
    assert path.name == f"Whither, answer 2.{name}"


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(records)
def test_the_figures_are_those_among_all(facts: list[AnyFact]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        session = kept(Path(folder), facts)
        for answer_id in session.state.answers:
            taken = alone(session, answer_id, Path(folder))
            assert list(taken.state.answers) == [answer_id]
            assert contract(taken.state, answer_id) == contract(session.state, answer_id)
            for name in EVERY:
                text_of(session, name, Options(answer_id=answer_id))


def test_the_machine_of_its_time_goes_with_it_and_no_other_hour(tmp_path: Path) -> None:
    def reading(at_ms: float, percent: float, **labels: str) -> Sample:
        return Sample(at_ns=ms(at_ms), took_ns=1, probe="cpu", values={"machine_percent": percent}, labels=labels)

    second: list[AnyFact] = [
        replace(fact, at_ns=ms(60_000)) if isinstance(fact, Submitted) else fact for fact in stories.whole_answer(2)
    ]
    facts: list[AnyFact] = [
        *stories.session_facts(),
        reading(300, 1, name="Some CPU"),
        *[reading(400 + n, 2) for n in range(5)],
        *stories.prompt_facts(1)[:6],
        *[reading(1100 + n, 50 + n) for n in range(5)],
        stories.ended(3000, "cancelled"),
        *[reading(20_000 + n, 7) for n in range(40)],
        *second[:3],
        reading(61_000, 99),
        *second[3:],
    ]
    session = kept(tmp_path, facts)
    taken = alone(session, 1, tmp_path)
    assert contract(taken.state, 1) == contract(session.state, 1)
    assert [fact.at_ns for fact in read(taken.entry.path) if isinstance(fact, Sample)] == [
        ms(at) for at in (300, 404, 1100, 1101, 1102, 1103, 1104)
    ]


def test_a_table_has_one_row_with_the_reasons_it_has_among_all(tmp_path: Path) -> None:
    session = kept(tmp_path, conversation(SAID))
    (row,) = csv.DictReader(io.StringIO(text_of(session, "csv", Options(answer_id=3)), newline=""))
    told = explained_contract(session.state, 3)
    assert row["answer_id"] == "3"
    assert row["findings"] == " ".join(finding["rule"] for finding in told["findings"])


def test_the_system_text_stands_with_an_answer_that_did_not_change_it(tmp_path: Path) -> None:
    session = kept(tmp_path, conversation(SAID, system="Systemic"))
    assert text_of(session, "md", Options()).count("Systemic") == 1
    assert text_of(session, "md", Options(answer_id=3)).count("Systemic") == 1


@pytest.mark.parametrize("name", EVERY)
def test_one_that_is_not_there_is_refused(name: str, tmp_path: Path) -> None:
    session = kept(tmp_path, conversation(SAID))
    with pytest.raises(UsageError, match="no answer 4"):
        export(session, name, Options(answer_id=4))


def test_of_many_answers_only_the_ends_are_told(tmp_path: Path) -> None:
    session = kept(tmp_path, conversation(SAID * 3))
    with pytest.raises(UsageError) as refused:
        export(session, "md", Options(answer_id=10))
    assert refused.value.help == "It has 1 to 9."
