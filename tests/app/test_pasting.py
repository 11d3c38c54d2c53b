"""Pasted text: an escape sequence within it stays where it is, however the terminal cuts what it sends."""

from __future__ import annotations

import pytest
from textual.events import Key, Paste

from homeai.app import pasting
from homeai.app.pasting import PasteParser, with_enter

TEXT = "begin \x1b[31mred \x1b[0m end \x1b\x1b[20"
SENT = f"a\x1b[200~{TEXT}\x1b[201~b\x1b[200~\x1b[201~\x1b[A"


def told(pieces: list[str]) -> list[str]:
    parser = PasteParser()
    messages = [message for piece in pieces for message in parser.feed(piece)]
    assert all(isinstance(message, Paste | Key) for message in messages)
    return [message.text if isinstance(message, Paste) else message.key for message in messages]  # type: ignore[attr-defined]


@pytest.mark.parametrize("size", range(1, len(SENT) + 1))
def test_a_paste_is_one_text_however_it_is_cut(size: int) -> None:
    pieces = [SENT[at : at + size] for at in range(0, len(SENT), size)]
    assert told(pieces) == ["a", TEXT, "b", "", "up"]


@pytest.mark.parametrize(
    ("typed", "taken"),
    [
        ("one\n", "one\r"),
        ("one\ntwo\n", "one\rtwo"),
        ("one\ntwo\nthree\nfo", "one\rtwo\nthree\nfo"),
        ("\n\none\n", "one\r"),
        ("on", "on"),
        ("\n", ""),
    ],
)
def test_the_first_line_that_was_typed_ahead_is_asked_and_the_rest_waits_in_the_box(typed: str, taken: str) -> None:
    assert with_enter(typed) == taken


def test_only_what_came_first_was_typed_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pasting, "has_input", lambda: True)
    assert told(["a\n", "b\n"]) == ["a", "enter", "b", "ctrl+j"]
    monkeypatch.setattr(pasting, "has_input", lambda: False)
    assert told(["a\n", "b\n"]) == ["a", "ctrl+j", "b", "ctrl+j"]
