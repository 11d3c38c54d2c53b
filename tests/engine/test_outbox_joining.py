"""Joining the facts of one bundle: nothing lost, nothing moved past what it belongs before, no figure changed."""

from __future__ import annotations

from typing import Any, Literal

from hypothesis import given
from hypothesis import strategies as st

from homeai.engine.bundle import join
from homeai.engine.wire import AnyReport
from homeai.events import AnyFact, Began, Ended, Fact, Notice, Text, Tokens
from homeai.metrics.fold import fold_all
from homeai.metrics.gaps import gaps_ns
from tests.engine.test_wire import any_report

Step = tuple[Literal["token", "text", "notice", "end"], int, str, int]

steps: st.SearchStrategy[list[Step]] = st.lists(
    st.tuples(
        st.sampled_from(["token", "token", "text", "text", "notice", "end"]),
        st.integers(1, 2),
        st.text("ab \n", max_size=3),
        st.integers(0, 5),
    ),
    max_size=40,
)


def story(told: list[Step]) -> list[AnyFact]:
    """Two answers that advance as the steps say, each token with the index and the stamp that follow."""
    now_ns = 100
    rows = {1: 0, 2: 0}
    facts: list[AnyFact] = [Began(at_ns=now_ns, answer_id=1), Began(at_ns=now_ns, answer_id=2)]
    for kind, answer_id, text, number in told:
        now_ns += 10 + number
        match kind:
            case "token":
                facts.append(token(now_ns, answer_id, rows[answer_id], number))
                rows[answer_id] += 1
            case "text":
                channel: Literal["answer", "reasoning"] = "reasoning" if number == 0 else "answer"
                facts.append(Text(at_ns=now_ns, answer_id=answer_id, channel=channel, text=text))
            case "notice":
                facts.append(Notice(at_ns=now_ns, code="x", message=text))
            case "end":
                facts.append(Ended(at_ns=now_ns, answer_id=answer_id, finish_reason="stop"))
    return facts


def token(at_ns: int, answer_id: int, first: int, number: int) -> Tokens:
    return Tokens(
        at_ns=at_ns,
        answer_id=answer_id,
        first=first,
        ids=(number,),
        sampled_at_ns=(at_ns,),
        compute_ns=(number,),
        sample_ns=(1,),
        text_ns=(2,),
        wait_other_ns=(3,),
        idle_ns=(4,),
        reasoning=number % 2,
        shared=number == 3,
    )


@given(steps)
def test_a_fold_sees_no_difference(told: list[Step]) -> None:
    facts = story(told)
    whole, joined = fold_all(facts), fold_all(fact for fact in join(facts) if isinstance(fact, Fact))
    assert whole.notices == joined.notices
    for answer_id, single in whole.answers.items():
        bundled = joined.answers[answer_id]
        assert bundled.answer_text == single.answer_text
        assert bundled.reasoning_text == single.reasoning_text
        assert bundled.ended == single.ended
        assert stamp(bundled.first_text) == stamp(single.first_text)
        assert stamp(bundled.first_answer) == stamp(single.first_answer)
        assert gaps_ns(bundled.tokens) == gaps_ns(single.tokens)
        for name in (
            "count",
            "lost",
            "reasoning",
            "first_at_ns",
            "last_at_ns",
            "first_parts",
            "decode_parts",
            "shared",
        ):
            assert getattr(bundled.tokens, name) == getattr(single.tokens, name)


def stamp(fact: Text | None) -> int | None:
    return None if fact is None else fact.at_ns


@given(st.lists(any_report, max_size=12))
def test_any_other_message_passes_as_it_is_and_nothing_moves_across_it(reports: list[AnyReport]) -> None:
    assert barriers(join(reports)) == barriers(reports)
    assert [kinds(stretch) for stretch in stretches(join(reports))] == [kinds(each) for each in stretches(reports)]


def barriers(reports: list[AnyReport]) -> list[AnyReport]:
    return [report for report in reports if not isinstance(report, Tokens | Text)]


def stretches(reports: list[AnyReport]) -> list[list[AnyReport]]:
    """The runs of the answers' stream between the other messages."""
    runs: list[list[AnyReport]] = [[]]
    for report in reports:
        if isinstance(report, Tokens | Text):
            runs[-1].append(report)
        else:
            runs.append([])
    return runs


def kinds(reports: list[AnyReport]) -> tuple[dict[Any, str], dict[int, list[int]]]:
    """All text and all token ids of a run, by answer."""
    text: dict[Any, str] = {}
    ids: dict[int, list[int]] = {}
    for report in reports:
        match report:
            case Text():
                text[report.answer_id, report.channel] = text.get((report.answer_id, report.channel), "") + report.text
            case Tokens():
                ids.setdefault(report.answer_id, []).extend(report.ids)
            case _:
                pass
    return text, ids


@given(steps)
def test_joining_twice_changes_nothing_more(told: list[Step]) -> None:
    once = join(story(told))
    assert join(once) == once


def test_a_bundle_of_a_fast_answer_is_two_messages() -> None:
    facts: list[AnyFact] = []
    for index in range(8):
        facts.append(token(10 * index, 1, index, 1))
        facts.append(Text(at_ns=10 * index + 1, answer_id=1, channel="answer", text=f"w{index} "))
    tokens, text = join(facts)
    assert isinstance(tokens, Tokens)
    assert (tokens.at_ns, tokens.first, len(tokens.ids), tokens.reasoning) == (70, 0, 8, 8)
    assert tokens.sampled_at_ns == tuple(range(0, 80, 10))
    assert text == Text(at_ns=1, answer_id=1, channel="answer", text="w0 w1 w2 w3 w4 w5 w6 w7 ")


def test_two_answers_are_kept_apart_though_they_alternate() -> None:
    facts: list[AnyFact] = [token(10 * i, 1 + i % 2, i // 2, 1) for i in range(6)]
    assert [(each.answer_id, each.first, len(each.ids)) for each in join(facts) if isinstance(each, Tokens)] == [
        (1, 0, 3),
        (2, 0, 3),
    ]


def test_the_channels_of_an_answer_keep_their_order() -> None:
    pieces: list[tuple[Literal["answer", "reasoning"], str]] = [("reasoning", "a"), ("answer", "b"), ("reasoning", "c")]
    facts = [Text(at_ns=1, answer_id=1, channel=channel, text=text) for channel, text in pieces]
    assert join(facts) == facts


def test_rows_that_do_not_follow_are_not_put_together() -> None:
    facts = [token(1, 1, 0, 1), token(2, 1, 5, 1)]
    assert join(facts) == facts
