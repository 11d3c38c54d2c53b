"""Every command of the dashboard, in one table: what it is called, which keys it has, when it means something.

The bindings, the line of keys at the bottom, the command palette and the help page are made from this table, and the
section `[keys]` of the settings file is read against it. A new command is a row here and a function that is given the
application, in the file of what it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING

from homeai.app.keys import key_words, normal_key
from homeai.errors import UsageError
from homeai.settings import BY_KEY as SETTINGS
from homeai.settings.keys import WrittenKeys
from homeai.settings.kinds import did_you_mean

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp


@dataclass(frozen=True, slots=True)
class Situation:
    """What it depends on whether a command means something."""

    on_chat: bool = True
    """The chat screen is on top."""
    on_help: bool = False
    over: str = ""
    """The command whose screen lies over the chat, where that screen says so (`COMMAND`)."""
    loading: bool = False
    """A model is being loaded, and no answer of the current chat waits for it."""
    live: bool = False
    """The current chat has a question that waits or an answer that runs."""
    chats: int = 1
    """Chats that are open."""
    answers: int = 0
    """Answers of the current chat that ended."""
    has_records: bool = False
    """Recorded sessions can be looked at."""
    replaying: bool = False
    """A record is played: nothing can be asked."""
    can_measure: bool = False
    """What this machine can do can be measured."""
    can_suspend: bool = False
    """There is a shell to hand the terminal back to."""


Available = Callable[[Situation], bool]


def on_chat(now: Situation) -> bool:
    """On the chat screen."""
    return now.on_chat


def asking(now: Situation) -> bool:
    """On the chat screen, where it is none of a replay."""
    return now.on_chat and not now.replaying


def asking_or(command_id: str) -> Available:
    """There, or on the command's own screen, which its key closes again."""
    return lambda now: asking(now) or now.over == command_id


def _in_replay(now: Situation) -> bool:
    return now.on_chat and now.replaying


def _on_figures(now: Situation) -> bool:
    """On the chat screen, or on a page of figures, from which the keys of both lead to the other."""
    return now.on_chat or now.over in ("details", "compare", "why")


def _on_answer(now: Situation) -> bool:
    """On the chat screen, or on a page about one answer."""
    return now.on_chat or now.over in ("details", "why")


def _where_measured(now: Situation) -> bool:
    """On the chat screen, on the page that says whether it was measured, or in the box that does it."""
    return now.can_measure and (now.on_chat or now.over in ("why", "calibrate"))


def _with_others(now: Situation) -> bool:
    return now.on_chat and now.chats > 1


@dataclass(frozen=True, slots=True)
class Command:
    """One thing the user can do."""

    id: str
    """Its name in the settings file."""
    keys: tuple[str, ...]
    """Its keys by default, the one that is shown first; none leaves it to the palette."""
    label: str
    """The line of keys' word for it."""
    name: str
    """The palette's name for it."""
    help: str
    """What it does, following its key: `begins a new line`."""
    run: str
    """`module:function` in `homeai.app`, called with the application; or `app:name`, an action that Textual's own
    application has; or empty, where the box for questions does it by itself."""
    available: Available = on_chat
    footer: Available | None = None
    """When the line of keys names it, narrower than `available`; None is never."""
    chosen: str = ""
    """What the palette runs, where that is not the same: who chose by name needs no second key press."""


COMMANDS: tuple[Command, ...] = (
    Command("send", ("enter",), "send", "Send", "sends the question", "",
            available=asking, footer=lambda now: not now.live),
    Command("new_line", ("ctrl+j", "shift+enter"), "new line", "New line",
            "begins a new line", "", available=asking, footer=lambda now: not now.live),
    Command("stop", ("escape",), "stop", "Stop",
            "stops the answer, keeping what was read for the next question; else the load of a model", "chats:stop",
            available=asking, footer=lambda now: now.live or now.loading),
    Command("help", ("f1",), "help", "Help", "shows the keys, and what the words mean", "help_screen:turn_help",
            available=lambda now: _on_figures(now) or now.on_help, footer=on_chat),
    Command("quit", ("ctrl+q",), "quit", "Quit", "quits; twice, while answers are written",
            "chats:quit_if_sure", chosen="app:quit", available=lambda _now: True, footer=on_chat),
    Command("sessions", ("f2",), "sessions", "Sessions", "lists the recorded sessions, to go on with one",
            "sessions_screen:turn_sessions",
            available=lambda now: now.has_records and (now.on_chat or now.over == "sessions"),
            footer=lambda now: not now.live and not now.answers),
    Command("models", ("f3",), "models", "Models", "lists the models of this machine, to change to another",
            "models_screen:turn_models", available=asking_or("models"), footer=on_chat),
    Command("chat_settings", ("f4",), "settings", "Settings of this chat",
            "shows how the model should behave and choose its words, to change it",
            "chat_settings_screen:turn_settings", available=asking_or("chat_settings")),
    Command("details", ("f5",), "details", "Details of this answer",
            "shows every figure of the answer, and how each is worked out", "details_screen:turn_details",
            available=_on_figures, footer=lambda now: (now.on_chat and now.live) or now.answers > 0),
    Command("compare", ("f6",), "compare", "Compare two answers",
            "shows two answers side by side, and by how much they differ", "compare_screen:turn_compare",
            available=_on_figures),
    Command("why", ("f10",), "why", "Why it took so long",
            "says why the answer took as long as it did, with the sums", "why_screen:turn_why",
            available=_on_figures, footer=lambda now: (now.on_chat and now.live) or now.answers > 0),
    Command("calibrate", (), "measure", "Measure this machine",
            "measures what this machine can do with the model, to compare answers with it",
            "measure_screen:turn_measuring", available=_where_measured),
    Command("earlier_answer", ("alt+left",), "earlier answer", "Earlier answer",
            "shows the figures of the answer before", "browsing:earlier", available=_on_answer),
    Command("later_answer", ("alt+right",), "later answer", "Later answer",
            "shows the figures of the answer after", "browsing:later", available=_on_answer),
    Command("new_chat", ("ctrl+n",), "new chat", "New chat",
            "begins a new chat, with an empty context; the others stay open and go on", "chats:new_chat",
            available=asking, footer=on_chat),
    Command("next_chat", ("f8", "ctrl+pagedown"), "next chat", "Next chat", "goes to the next chat",
            "chats:next_chat", available=_with_others, footer=_with_others),
    Command("previous_chat", ("f7", "ctrl+pageup"), "chat before", "Previous chat", "goes to the chat before",
            "chats:previous_chat", available=_with_others),
    Command("close_chat", ("f9",), "close chat", "Close chat",
            "closes the chat and stops its answer; twice, when something was said in it", "chats:close_chat_if_sure",
            chosen="chats:close_chat", available=asking, footer=_with_others),
    Command("palette", ("ctrl+p",), "commands", "Commands", "lists all commands, colours among them",
            "app:command_palette", footer=on_chat),
    Command("ask_again", ("ctrl+r",), "again", "Ask again",
            "asks your last question again; the new answer takes the place of the old one", "asking:ask_again",
            available=asking),
    Command("edit_question", ("ctrl+o",), "change", "Change the question",
            "puts your last question into the box, to change it and ask it anew", "asking:edit_question",
            available=asking),
    Command("copy_answer", ("alt+c",), "copy", "Copy the answer",
            "copies the answer as it was written, in Markdown", "copying:copy_answer"),
    Command("copy_code", ("alt+k",), "code", "Copy the code",
            "copies the code in the answer; press it again for the next block", "copying:copy_code"),
    Command("toggle_reasoning", ("ctrl+t",), "thoughts", "Thoughts",
            "shows or hides what was thought before answers, and the rest of long questions", "chats:toggle_folded"),
    Command("scroll_up", ("pageup",), "back", "Scroll up", "goes back in the conversation", "chats:scroll_up"),
    Command("scroll_down", ("pagedown",), "on", "Scroll down", "goes on in the conversation", "chats:scroll_down"),
    Command("to_end", ("ctrl+g", "ctrl+end"), "end", "To the end",
            "goes to the end of the conversation", "chats:to_end"),
    Command("copy_or_stop", ("ctrl+c",), "copy or stop", "Copy the selection",
            "copies what is selected, else stops the answer", "chats:copy_or_stop", available=lambda _now: True),
    Command("suspend", ("ctrl+z",), "to the shell", "To the shell",
            "hands the terminal back to the shell; fg comes back", "app:suspend_process",
            available=lambda now: now.can_suspend),
    Command("replay_pause", ("space",), "pause", "Replay: pause", "in a replay: stands still, and goes on",
            "replaying:turn", available=_in_replay, footer=_in_replay),
    Command("replay_step", ("right",), "step", "Replay: step", "in a replay: goes to the next thing to see",
            "replaying:step", available=_in_replay, footer=_in_replay),
    Command("replay_before", ("left",), "back", "Replay: back", "in a replay: goes back to the question",
            "replaying:answer_before", available=_in_replay, footer=_in_replay),
    Command("replay_next", ("n", "N"), "next question", "Replay: next question",
            "in a replay: goes to the next question", "replaying:next_answer", available=_in_replay, footer=_in_replay),
    Command("replay_faster", ("up",), "faster", "Replay: faster", "in a replay: plays faster",
            "replaying:faster", available=_in_replay, footer=_in_replay),
    Command("replay_slower", ("down",), "slower", "Replay: slower", "in a replay: plays slower",
            "replaying:slower", available=_in_replay, footer=_in_replay),
    Command("theme", (), "colours", "Colours", "chooses the colours", "app:change_theme"),
    Command("screenshot", (), "picture", "Picture of the screen", "saves the screen as an SVG picture",
            "chats:save_picture"),
)  # fmt: skip
"""In the order of the help page. The line of keys has those that fit, in this order."""

BY_ID: Mapping[str, Command] = {command.id: command for command in COMMANDS}


class Keys:
    """Which keys each command has: those of the table, and over them those of the settings file.

    Args:
        written: The settings file's section, by command.
        problems: Takes what makes no sense, which then counts as not written; without it the first is raised.

    Raises:
        UsageError: It names a command that there is not, a key that cannot be one, one key twice, or none that sends.
    """

    def __init__(
        self, written: Mapping[str, WrittenKeys] | None = None, problems: list[UsageError] | None = None
    ) -> None:
        self.written: dict[str, WrittenKeys] = {}
        self._keys = {command.id: command.keys for command in COMMANDS}
        found: list[UsageError] = []
        for command_id, given in (written or {}).items():
            try:
                self._keys[command_id] = _normal(command_id, given)
            except UsageError as problem:
                found.append(problem)
            else:
                self.written[command_id] = given
        # Whether a key has two commands is known where all that was written holds.
        found += [] if found else self._doubles()
        if problems is not None:
            problems += found
        elif found:
            raise found[0]

    def of(self, command_id: str) -> tuple[str, ...]:
        """The command's keys as Textual calls them; the one that is shown comes first."""
        return self._keys[command_id]

    def words(self, command_id: str) -> str:
        """The first of them as people write it, `Ctrl+N`; empty where there is none."""
        keys = self._keys[command_id]
        return key_words(keys[0]) if keys else ""

    def all_words(self, command_id: str) -> str:
        """All of them, `F8, Ctrl+PgDn`."""
        return ", ".join(dict.fromkeys(key_words(key) for key in self._keys[command_id]))

    def _doubles(self) -> Iterator[UsageError]:
        owners: dict[str, str] = {}
        for command_id, keys in self._keys.items():
            for key in dict.fromkeys(keys):
                other = owners.setdefault(key, command_id)
                if other == command_id:
                    continue
                written, kept = (command_id, other) if command_id in self.written else (other, command_id)
                yield UsageError(
                    f'{self.written[written].place}: "{key}" is the key of {kept} and of {written}.',
                    code="usage",
                    help=f'Give {kept} another key too, such as {kept} = "f12".',
                )


def _normal(command_id: str, written: WrittenKeys) -> tuple[str, ...]:
    if command_id not in BY_ID:
        raise UsageError(f"{written.place}: {_unknown(command_id)}", code="usage")
    try:
        keys = tuple(normal_key(key) for key in written.keys)
    except ValueError as problem:
        raise UsageError(f"{written.place}: {command_id}: {problem}", code="usage") from problem
    if command_id == "send" and not keys:
        # No other way asks a question.
        raise UsageError(f"{written.place}: send needs a key.", code="usage")
    return keys


def _unknown(command_id: str) -> str:
    if command_id in SETTINGS:
        return f"{command_id} is a setting and belongs above [keys]"
    hint = did_you_mean(command_id.replace("-", "_").lower(), BY_ID)
    return f'"{command_id}" is nothing that a key could do{hint}'


def is_available(command_id: str, now: Situation) -> bool:
    """Whether the command means something now."""
    return BY_ID[command_id].available(now)


def may_be_available(command_id: str, now: Situation) -> bool:
    """Whether its key is the command's on this screen: what was typed before it may still change the chats."""
    return is_available(command_id, replace(now, live=True, chats=2, answers=1))


def footer(now: Situation, keys: Keys) -> Iterable[tuple[str, str]]:
    """The keys that do something now with their words, the most useful first: in a replay its own."""
    for command in sorted(COMMANDS, key=lambda command: command.footer is not _in_replay):
        words = keys.words(command.id)
        if words and command.footer is not None and command.available(now) and command.footer(now):
            yield words, command.label


def function(run: str) -> Callable[[HomeaiApp], None]:
    """The function that a command runs. Its module is imported only now: the first paint does not wait for it."""
    module, _, name = run.partition(":")
    found: Callable[[HomeaiApp], None] = getattr(import_module(f"homeai.app.{module}"), name)
    return found


def rows(keys: Keys, *, every: bool) -> list[tuple[str, str, str]]:
    """For a list of settings: `keys.new_chat`, its keys, and where they come from; the changed ones, or every one."""
    return [
        (
            f"keys.{command.id}",
            ", ".join(keys.of(command.id)) or "-",
            keys.written[command.id].place if command.id in keys.written else "default",
        )
        for command in COMMANDS
        if every or command.id in keys.written
    ]
