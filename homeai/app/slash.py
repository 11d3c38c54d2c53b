"""Commands typed into the box: `/new` begins a new chat. Each runs a command of the table, by its id."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from homeai.app.commands import BY_ID, is_available
from homeai.settings.kinds import did_you_mean
from widgets.foreign import on_one_line

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp

_WORD = re.compile(r"/([A-Za-z_-]*)")
"""A path, `/etc/hosts`, is none: it goes to the model as it is."""


@dataclass(frozen=True, slots=True)
class Slash:
    """A word that can be typed behind a slash."""

    word: str
    command: str
    """The id of the command that it runs."""
    argument: str = ""
    """What may follow it, as the help writes that."""
    run: str = ""
    """`module:function` in `homeai.app`, called with the application and what follows the word."""
    help: str = ""
    """What that does; without an argument what the word does, where the command's own help would be wrong."""
    also: tuple[str, ...] = ()
    """Other words for it, which people know from other programs; they are not listed."""


_WORDS = (
    Slash("help", "help", also=("h",)),
    Slash("new", "new_chat", also=("clear", "reset")),
    Slash("model", "models", "NAME", "models_screen:use_named", "changes to this model", also=("models", "load")),
    Slash("system", "chat_settings", "TEXT", "slash:set_system",
          "tells the model how to behave, from your next question on; /system none takes that back"),
    Slash("settings", "chat_settings", also=("set",)),
    Slash("context", "chat_settings", "N", "fitting:use_context",
          "loads the model again with a context of so many tokens, such as 8k", also=("ctx",)),
    Slash("again", "ask_again", also=("retry", "regenerate")),
    Slash("edit", "edit_question"),
    Slash("copy", "copy_answer", "file", "copying:save_answer", "saves the answer in a file instead"),
    Slash("code", "copy_code", "file", "copying:save_code", "saves the code block in a file instead"),
    Slash("details", "details"),
    Slash("compare", "compare"),
    Slash("why", "why"),
    Slash("calibrate", "calibrate", also=("measure", "benchmark")),
    Slash("sessions", "sessions", also=("session", "history", "resume", "continue")),
    Slash("end", "to_end"),
    Slash("theme", "theme", also=("themes", "colours", "colors", "colour", "color")),
    Slash("picture", "screenshot", also=("screenshot",)),
    Slash("close", "close_chat", help="closes the chat and stops its answer"),
    Slash("quit", "quit", also=("exit", "bye", "q")),
)  # fmt: skip

SLASHES = tuple(slash for slash in _WORDS if slash.command in BY_ID)
"""In the order of the help page."""

_BY_WORD = {word: slash for slash in SLASHES for word in (slash.word, *slash.also)}


@dataclass(frozen=True, slots=True)
class Call:
    """A command as it was typed."""

    word: str
    argument: str = ""


def parse(text: str) -> Call | None:
    """The command that this text is, known or not; None for a question."""
    if not text.startswith("/") or not _is_one_line(text):
        return None
    first, _, rest = text.strip().partition(" ")
    match = _WORD.fullmatch(first)
    return None if match is None else Call(match[1].lower(), rest.strip())


def unescaped(text: str) -> str:
    """The question that is meant: a second slash before it only says that it is no command."""
    return text[1:] if text.startswith("//") and _is_one_line(text) else text


def escaped(question: str) -> str:
    """The text to type for this question."""
    taken_apart = parse(question) is not None or (question.startswith("//") and _is_one_line(question))
    return f"/{question}" if taken_apart else question


def _is_one_line(text: str) -> bool:
    return "\n" not in text.strip()


def run(app: HomeaiApp, call: Call) -> None:
    """Do what was typed, or say why not and leave it in the box."""
    slash = _BY_WORD.get(call.word)
    if slash is None:
        hint = did_you_mean(f"/{call.word}", [f"/{word}" for word in _BY_WORD])
        _refuse(app, f"There is no command /{call.word}{hint or '. /help lists them.'}")
    elif call.argument and not slash.run:
        _refuse(app, f"/{call.word} takes nothing after it.")
    elif not is_available(slash.command, app.situation()):
        app.notify(f"/{call.word} means nothing now.", timeout=4, markup=False)
    else:
        app.keep_in_history(app.chat_screen.prompt.text)
        app.chat_screen.prompt.accepted()
        if call.argument:
            module, _, name = slash.run.partition(":")
            with_argument: Callable[[HomeaiApp, str], None] = getattr(import_module(f"homeai.app.{module}"), name)
            with_argument(app, call.argument)
        else:
            app.run_command(slash.command)


def _refuse(app: HomeaiApp, words: str) -> None:
    """Say what is wrong, and how the same text becomes a question."""
    escape = "A line that begins with // or a space is sent as it is."
    app.notify(on_one_line(f"{words} {escape}"), timeout=8, markup=False)


def set_system(app: HomeaiApp, text: str) -> None:
    """Give the current chat this system text, or take it away, and say so in the conversation."""
    from homeai.app.asking import set_system as set_it

    wanted = None if text.lower() == "none" else text
    set_it(app, wanted)
    words = "without a system text, as the model was made" if wanted is None else f"with this system text: {wanted}"
    chat = app.desk.current
    # It stands before everything that was said.
    cost = "" if chat.is_blank else " (the model then reads the whole chat again)"
    app.chat_screen.talk(chat.number).remark(f"From your next question on, the model answers {words}{cost}")


def complete(typed: str) -> str | None:
    """What Tab makes of the text before the cursor; None where that is no beginning of a command."""
    if not (matches := _matching(typed)):
        return None
    if len(matches) == 1:
        return f"/{matches[0].word}{' ' if matches[0].argument else ''}"
    first, last = min(slash.word for slash in matches), max(slash.word for slash in matches)
    common = next(at for at in range(len(first), -1, -1) if last.startswith(first[:at]))
    return f"/{first[:common]}"


def hint(text: str) -> str:
    """What the line above the box says while a command is being typed; empty while none is."""
    call = parse(text)
    if call is None:
        return ""
    known = _BY_WORD.get(call.word)
    if known is not None and call.argument and known.run:
        return f"{_usage(known)}  {known.help}"
    if known is not None and not call.argument:
        more = f"; {_usage(known)} {known.help}" if known.run else ""
        return f"/{known.word}  {_plain_help(known)}{more}"
    if matches := _matching(text):
        return "  ".join(f"/{slash.word}" for slash in matches)
    return f"no command /{call.word}; begin with // to send this as it is"


def table() -> list[tuple[str, str]]:
    """For the help page: what can be typed, and what that does."""
    rows = []
    for slash in SLASHES:
        rows.append((f"/{slash.word}", _plain_help(slash)))
        if slash.argument:
            rows.append((_usage(slash), slash.help))
    return rows


def _plain_help(slash: Slash) -> str:
    """What the word alone does."""
    return BY_ID[slash.command].help if slash.run or not slash.help else slash.help


def _usage(slash: Slash) -> str:
    return f"/{slash.word}{f' {slash.argument}' if slash.argument else ''}"


def _matching(typed: str) -> Sequence[Slash]:
    """The commands that begin like this; none once a space follows the word."""
    match = _WORD.fullmatch(typed)
    return [] if match is None else [slash for slash in SLASHES if slash.word.startswith(match[1].lower())]
