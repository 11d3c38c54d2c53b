"""`homeai sessions`: what was recorded: list, show, search, rename, delete."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from homeai.cli.console import Passing, say, write
from homeai.cli.parser import Parser
from homeai.errors import UsageError
from homeai.units import minute

if TYPE_CHECKING:
    from homeai.journal.entries import Entry, Recorded
    from homeai.journal.library import Hit, Library
    from homeai.metrics.state import AnswerState

SUMMARY = "lists, shows, searches, renames and deletes the recorded sessions"

ACTIONS = {
    "list": "all sessions, the newest first; what homeai sessions does",
    "show NAME[:ANSWER]": "what was said in one, with the figures of each answer; or one answer",
    "search WORDS": "where all these words were said together, or given as a title",
    "rename NAME TITLE": "give one a title",
    "delete NAME": "delete one, after asking",
}
PROGRESS_FROM = 20
"""Records to read anew from which on that is told: fewer take no noticeable time."""


def parser() -> Parser:
    """The command's arguments."""
    made = Parser(
        "homeai sessions",
        SUMMARY,
        usage="[list | show | search | rename | delete] [NAME | WORDS ...] [flags]",
        examples=(
            "homeai sessions",
            "homeai sessions show last",
            "homeai sessions search blue sky",
            'homeai sessions rename last "On the sky"',
            "homeai sessions list --json | jq -r '.[].id'",
        ),
        lists={"What to do": ACTIONS},
        notes=("NAME is last (the newest session), the beginning of an id, part of a title, or a file.",),
    )
    made.add_argument("words", metavar="WORD", nargs="*", help="what to do, and with which session")
    made.add_argument("--json", action="store_true", help="print JSON: a list, or for show one object")
    made.add_argument("--yes", action="store_true", help="delete without asking")
    return made


def run(arguments: argparse.Namespace, entered_at_ns: int) -> int:  # noqa: ARG001 - what every command takes
    """Do what was asked; the status of a list or a search is 0 also when it is empty."""
    action, *words = arguments.words or ["list"]
    known = {name.split()[0]: name.split()[1:] for name in ACTIONS}
    if action not in known:
        from homeai.settings.kinds import did_you_mean

        meant = did_you_mean(action, known)
        raise UsageError(
            f'homeai sessions cannot "{action}"{meant or "."}',
            code="usage",
            help="" if meant else f"It can {', '.join(known)}.",
        )
    least = len(known[action])
    if len(words) < least or (least < 2 and action != "search" and len(words) > least):
        takes = " ".join(known[action]) or "nothing more"
        raise UsageError(f"homeai sessions {action} takes {takes}.", code="usage")
    from homeai.journal.library import Library
    from homeai.places import cache_dir, data_dir

    with Library(data_dir(), cache_dir(), progress=reading_progress()) as library:
        match action:
            case "list":
                _list(library, as_json=arguments.json)
            case "show":
                entry, number = library.find_answer(words[0])
                _show(library.read(entry), number, as_json=arguments.json)
            case "search":
                _search(library.search(" ".join(words)), as_json=arguments.json)
            case "rename":
                entry = library.find(words[0])
                title = library.rename(entry, " ".join(words[1:]))
                called = f'now called "{title}"' if title else "called by its first words again"
                say(f"homeai: Session {entry.short_id} is {called}.")
            case "delete":
                _delete(library, library.find(words[0]), asks=not arguments.yes)
    return 0


def reading_progress() -> Callable[[int, int], None]:
    """Return what tells on a terminal how far the reading of changed records is."""
    progress = Passing()

    def tell(done: int, total: int) -> None:
        if total >= PROGRESS_FROM:
            progress.show(f"reading {done:,} of {total:,} sessions" if done < total else "")

    return tell


def _list(library: Library, *, as_json: bool) -> None:
    entries = library.sessions()
    if as_json:
        write(json.dumps([_object(entry) for entry in entries]) + "\n")
    elif entries:
        write(_table(entries))
    else:
        say("homeai: No session was recorded yet.")


def _table(entries: list[Entry]) -> str:
    from homeai.cli.table import table
    from homeai.metrics.title import title_shown
    from homeai.units import MISSING, count, significant, size, span

    rows = [
        (
            entry.short_id,
            minute(entry.last_at),
            title_shown(entry.title) or "(no words)",
            entry.model or MISSING,
            count(entry.answers),
            span(entry.ttft_ns),
            MISSING if entry.decode_tps is None else significant(entry.decode_tps),
            size(entry.size_bytes),
            _remark(entry),
        )
        for entry in entries
    ]
    heading = ("id", "date", "title", "model", "answers", "median wait", "median tok/s", "size", "")
    return table(heading, rows, right=(4, 5, 6, 7))


def _remark(entry: Entry) -> str:
    remarks = ("interrupted" if entry.interrupted else "", "damaged" if entry.damage else "")
    return ", ".join(remark for remark in remarks if remark)


def _show(session: Recorded, number: int | None, *, as_json: bool) -> None:
    from homeai.explain.contract import explained_contract
    from homeai.journal.entries import answer_of
    from homeai.metrics.talks import talks

    entry, state = session.entry, session.state
    wanted = state.answers if number is None else {answer_of(state, number): state.answers[number]}
    if entry.damage:
        say(f"homeai: {entry.damage}")
    if entry.is_newer:
        say("homeai: A later version of homeai wrote this session: some of it may be missing here.")
    if as_json:
        answers = [
            _asked(answer) | {"answer": explained_contract(state, answer_id)} for answer_id, answer in wanted.items()
        ]
        write(json.dumps({"schema": 1, "session": _object(entry), "answers": answers}, allow_nan=False) + "\n")
        return
    write(
        f"{entry.title or '(no words)'}\n{entry.short_id} · {minute(entry.started_at)} · {entry.model or 'no model'}\n"
    )
    replaced = {answer_id for talk in talks(state) for answer_id in talk.replaced_ids}
    for answer in wanted.values():
        write(_told(answer, several=entry.chats > 1, is_replaced=answer.answer_id in replaced))


def _told(answer: AnswerState, *, several: bool, is_replaced: bool) -> str:
    from homeai.journal.words import NOT_RECORDED
    from homeai.metrics.summary import summary_line

    asked, ended = answer.submitted, answer.ended
    chat = f"chat {asked.chat_id}, " if several and asked is not None else ""
    parts = ["", f"--- {chat}answer {answer.answer_id}{', replaced later' if is_replaced else ''}"]
    if asked is not None:
        parts += [f"> {line}" for line in (asked.prompt or NOT_RECORDED).split("\n")]
    nothing = NOT_RECORDED if answer.is_wordless and answer.tokens.count else "(no answer)"
    parts += ["", answer.answer_text.strip("\n") or nothing, "", summary_line(answer)]
    if ended is not None and ended.fault is not None:
        parts.append(f"{ended.fault.message} {ended.fault.help}".rstrip())
    return "\n".join(parts) + "\n"


def _asked(answer: AnswerState) -> dict[str, Any]:
    asked = answer.submitted
    names = ("chat_id", "prompt", "system", "replaces")
    return {name: None if asked is None else getattr(asked, name) for name in names}


def _search(hits: list[Hit], *, as_json: bool) -> None:
    if as_json:
        found = [
            {
                "id": hit.entry.id,
                "title": hit.entry.title,
                "answer_id": hit.answer_id,
                "who": hit.who,
                "snippet": hit.snippet,
            }
            for hit in hits
        ]
        write(json.dumps(found) + "\n")
    elif hits:
        from homeai.cli.table import table
        from homeai.journal.library import HITS_MOST

        who = {"user": "you", "assistant": "model", "title": "title"}
        rows = [(_place(hit), minute(hit.entry.last_at), who[hit.who], hit.snippet) for hit in hits]
        write(table(("where", "date", "who", "what"), rows))
        if len(hits) == HITS_MOST:
            say(f"homeai: These are the newest {HITS_MOST} places; more words find fewer.")
    else:
        say("homeai: Nothing of the kind was said.")


def _place(hit: Hit) -> str:
    """As show, why, export and compare take it: `9f86d081:3`."""
    return hit.entry.short_id if hit.answer_id is None else f"{hit.entry.short_id}:{hit.answer_id}"


def _delete(library: Library, entry: Entry, *, asks: bool) -> None:
    what = f"session {entry.name} of {minute(entry.last_at)}"
    if asks:
        if not sys.stdin.isatty():
            raise UsageError(f"Nobody can be asked whether to delete {what}.", code="usage", help="--yes deletes it.")
        say(f"Delete {what}, {entry.answers} answer{'' if entry.answers == 1 else 's'}, for good? [y/N] ", end="")
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            say("homeai: Nothing was deleted.")
            return
    library.delete(entry)
    say(f"homeai: Deleted {what}.")


def _object(entry: Entry) -> dict[str, Any]:
    from homeai.units import ms

    return {
        "id": entry.id,
        "title": entry.title,
        "model": entry.model,
        "started_at": entry.started_at,
        "last_at": entry.last_at,
        "answers": entry.answers,
        "chats": entry.chats,
        "ttft_ms": None if entry.ttft_ns is None else ms(round(entry.ttft_ns)),
        "decode_tps": entry.decode_tps,
        "size_bytes": entry.size_bytes,
        "record": entry.record,
        "interrupted": entry.interrupted,
        "damage": entry.damage or None,
        "path": str(entry.path),
    }
