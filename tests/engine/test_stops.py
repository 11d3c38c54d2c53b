"""Stop strings across tokens: the text up to the first one that becomes complete, and nothing held for ever."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeai.engine.llamacpp.stops import StopFilter, held_length


def _run(tokens: Sequence[str], *stops: str) -> tuple[list[str], str, str | None]:
    stop_filter = StopFilter(stops)
    shown = [stop_filter.feed(token) for token in tokens]
    return shown, stop_filter.flush(), stop_filter.matched


def test_a_stop_over_several_tokens_shows_nothing_of_itself() -> None:
    assert _run(["RST", "U", "VW", "X"], "RSTUVWX") == (["", "", "", ""], "", "RSTUVWX")


def test_what_only_began_like_a_stop_is_shown_when_that_is_certain() -> None:
    assert _run(["RST", "q"], "RSTUVWX") == (["", "RSTq"], "", None)


def test_what_only_began_like_a_stop_is_shown_at_the_end() -> None:
    assert _run(["RST", "U"], "RSTUVWX") == (["", ""], "RSTU", None)


def test_the_first_stop_to_become_complete_ends_the_text() -> None:
    assert _run(["abcdef"], "abcdef", "cd") == (["ab"], "", "cd")


def test_of_two_stops_that_end_together_the_longer_one_is_cut_off() -> None:
    assert _run(["x", "ab", "c"], "c", "abc") == (["x", "", ""], "", "abc")


def test_text_after_a_stop_is_never_shown() -> None:
    stop_filter = StopFilter(["END"])
    assert [stop_filter.feed(text) for text in ("a END b", " c")] == ["a ", ""]
    assert stop_filter.flush() == ""
    assert stop_filter.hidden == "END b c"


@pytest.mark.parametrize("stops", [(), ("",), ("", "")])
def test_empty_stop_strings_stop_nothing(stops: tuple[str, ...]) -> None:
    assert _run(["a", "", "b"], *stops) == (["a", "", "b"], "", None)


def test_a_stop_that_begins_inside_a_held_tail_is_found() -> None:
    assert _run(["aaa", "a", "b"], "aaab") == (["", "a", ""], "", "aaab")


_letters = st.text("ab\n", max_size=12)


def _oracle(text: str, stops: Sequence[str]) -> str:
    """Read character by character: the text ends where it first ends with a stop; the longest one is taken off."""
    for end in range(1, len(text) + 1):
        found = [stop for stop in stops if stop and text[:end].endswith(stop)]
        if found:
            return text[: end - len(max(found, key=len))]
    return text


@given(st.lists(_letters, max_size=8), st.lists(st.text("ab\n", max_size=5), max_size=4))
def test_any_cutting_shows_the_text_up_to_the_first_stop(tokens: list[str], stops: list[str]) -> None:
    text = "".join(tokens)
    stop_filter = StopFilter(stops)
    shown = ""
    for token in tokens:
        shown += stop_filter.feed(token)
        assert len(stop_filter.held) < max((len(stop) for stop in stops), default=1) or not stop_filter.held
    shown += stop_filter.flush()
    assert shown == _oracle(text, stops)
    assert (stop_filter.matched is not None) == (shown != text)
    assert shown + stop_filter.hidden == text


@given(_letters, st.lists(st.text("ab\n", min_size=1, max_size=5), max_size=4))
def test_only_a_tail_that_may_become_a_stop_is_held(text: str, targets: list[str]) -> None:
    tails = [n for n in range(1, len(text) + 1) for t in targets if len(t) > n and t.startswith(text[-n:])]
    assert held_length(text, targets) == max(tails, default=0)
