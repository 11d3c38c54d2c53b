"""A recorded session played in the dashboard: its questions come by themselves, and keys stop it, step and jump."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from textual.events import Key

from homeai.app.chat_screen import ChatScreen
from homeai.app.chats import clear, go_to
from homeai.app.commands import COMMANDS
from homeai.events import Ended, Submitted
from homeai.journal.words import NOT_RECORDED

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp
    from homeai.app.desk import OpenChat
    from homeai.session.replay import Replay
    from homeai.settings import Settings

REFUSAL = "This is a replay: nothing can be asked in it. homeai without a command opens a chat."


class Replaying:
    """What the application does with a replay.

    Args:
        app: Where it is shown.
        replay: What is played.
        tour: What to say at the beginning (0) and after each answer, by its id.
    """

    def __init__(self, app: HomeaiApp, replay: Replay, tour: Mapping[int, str] = MappingProxyType({})) -> None:
        self._app = app
        self.replay = replay
        self._tour = tour
        self._chats: dict[int, OpenChat] = {}
        """By the number of the chat in the record."""
        self._shown: dict[int, list[int]] = {}
        """By the number of the chat in the record the answers in its conversation."""
        replay.on_rewind = self._rewind

    def begin(self) -> None:
        """Close the box: nothing can be asked."""
        prompt = self._app.chat_screen.prompt
        prompt.disabled, prompt.placeholder = True, "a replay: nothing can be asked in it"
        self._say(self._app.desk.current, 0)
        if self.replay.damage:
            self._app.chat_screen.talk(self._app.desk.current.number).remark(self.replay.damage)

    def take_question(self, asked: Submitted) -> None:
        """Show a question that was asked in the record, in its chat."""
        app, chat = self._app, self._chats.get(asked.chat_id)
        if chat is None:
            chat = app.desk.current if not self._chats else app.desk.open()
            self._chats[asked.chat_id] = chat
            app.chat_screen.add_talk(chat.number)
        talk, shown = app.chat_screen.talk(chat.number), self._shown.setdefault(asked.chat_id, [])
        replaced = asked.replaces if asked.replaces in shown else None
        while replaced in shown:
            shown.pop()
            talk.retract()
        shown.append(asked.answer_id)
        chat.begin(asked.answer_id, asked.prompt, replaced)
        talk.ask(asked.prompt or NOT_RECORDED)
        go_to(app, chat)

    def take_end(self, ended: Ended) -> None:
        """Say what the tour says of an answer."""
        if (chat := self._app.desk.of_answer(ended.answer_id)) is not None:
            self._say(chat, ended.answer_id)

    def take_key(self, key: Key) -> None:
        """Say why nothing that is typed goes anywhere."""
        app = self._app
        is_ours = any(key.key in app.keys.of(command.id) for command in COMMANDS)
        if key.is_printable and not is_ours and isinstance(app.screen, ChatScreen):
            app.notify(REFUSAL, timeout=4)

    def line(self) -> str:
        """What is played, and how far it is."""
        replay = self.replay
        answer, answers = replay.answers
        does = "over" if replay.is_over else "playing" if replay.is_playing else "paused"
        place = f"{_clock(replay.place_ns)} of {_clock(replay.length_ns)}"
        return f"replay {does} · {place} · question {answer} of {answers} · {replay.speed:g}×"

    def _say(self, chat: OpenChat, number: int) -> None:
        if number in self._tour:
            self._app.chat_screen.talk(chat.number).remark(self._tour[number])

    def _rewind(self) -> None:
        self._chats.clear()
        self._shown.clear()
        self._app.hear_again()
        self._app.clear_notifications()
        self._say(clear(self._app), 0)


def _clock(span_ns: int) -> str:
    seconds = span_ns // 1_000_000_000
    return f"{seconds // 60}:{seconds % 60:02d}"


def turn(app: HomeaiApp) -> None:
    """Stand still, or go on."""
    if app.replaying is not None:
        app.replaying.replay.turn()


def step(app: HomeaiApp) -> None:
    """Go to the next moment at which there is something new to see."""
    if app.replaying is not None:
        app.replaying.replay.step()


def next_answer(app: HomeaiApp) -> None:
    """Go to the next question."""
    if app.replaying is not None:
        app.replaying.replay.next_answer()


def answer_before(app: HomeaiApp) -> None:
    """Go back to the question."""
    if app.replaying is not None:
        app.replaying.replay.answer_before()


def faster(app: HomeaiApp) -> None:
    """Play faster."""
    if app.replaying is not None:
        app.replaying.replay.change_speed(1)


def slower(app: HomeaiApp) -> None:
    """Play slower."""
    if app.replaying is not None:
        app.replaying.replay.change_speed(-1)


def run_replay(settings: Settings, replay: Replay, tour: Mapping[int, str] = MappingProxyType({})) -> int:
    """Show the dashboard with a replay until the user leaves or a signal comes; returns the exit status.

    Raises:
        HomeaiError: The record cannot be played.
        Exception: Whatever ended the screen unexpectedly.
    """
    from homeai.app.app import HomeaiApp
    from homeai.app.commands import Keys
    from homeai.app.main import show, shows_unicode

    app = HomeaiApp(
        replay.open,
        sampler=settings.sampler(),
        keys=Keys(settings.keys),
        clock=replay.now_ns,
        theme=settings.value("theme") or os.environ.get("TEXTUAL_THEME"),
        insist=True,
        ascii_only=bool(settings.value("ascii")) or not shows_unicode(os.environ),
        colourless=bool(settings.value("no_color")),
        replay=replay,
        tour=tour,
        targets=settings.targets(),
    )
    return show(app)
