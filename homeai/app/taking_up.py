"""Going on with a recorded session: its chats come back, and what the next question costs is told beforehand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from homeai import units
from homeai.app import asking
from homeai.app.chats import clear
from homeai.journal.words import NOT_RECORDED
from homeai.metrics.state import SessionState
from homeai.metrics.talks import Talk, talks
from widgets.figures import closing, rough_span

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp
    from homeai.app.bridge import SessionLike
    from homeai.app.desk import OpenChat
    from homeai.events import Sampler


def show_chats(app: HomeaiApp, session: SessionLike, answer_id: int | None = None) -> None:
    """Put the chats of a session that goes on onto the desk, in the place of those that are there.

    The one with this answer is shown, else the one in which something was said last.
    """
    shown, prompt = app.desk.current, app.chat_screen.prompt
    asking.give_back(app, shown)  # a question that was typed before the session was there
    # What stands in the box stays there.
    unsent = [text for chat in app.desk for text in asking.unsent(app, chat) if text != prompt.draft]
    state, found = session.state, talks(session.state)
    blank = clear(app)
    asking.put_away(app, unsent)
    newest = blank
    for talk in found:
        chat = blank if talk is found[0] else app.desk.open()
        chat.take_up(session.take_up(talk), talk, state)
        _show(app, chat, talk, state)
        conversation = app.chat_screen.talk(chat.number)
        conversation.remark(cost(state, talk, None if session.model is None else str(session.model.path)))
        if kept := kept_settings(chat.sampler, app.desk.sampler):
            key = app.keys.words("chat_settings")
            conversation.remark(f"{kept}{f' {key} changes that.' if key else ''}")
        if newest.newest_id is None or (chat.newest_id or 0) > newest.newest_id:
            newest = chat
    wanted = app.desk.of_answer(answer_id) or newest
    app.desk.show(wanted)
    app.chat_screen.show_talk(wanted.number)
    app.redraw()


def _show(app: HomeaiApp, chat: OpenChat, talk: Talk, state: SessionState) -> None:
    """Write down in the conversation what was said."""
    screen = app.chat_screen
    screen.add_talk(chat.number)
    conversation = screen.talk(chat.number)
    for answer_id in talk.answer_ids:
        answer = state.answers[answer_id]
        assert answer.submitted is not None
        conversation.ask(answer.submitted.prompt or NOT_RECORDED)
        if thoughts := answer.reasoning_text:
            conversation.write("reasoning", thoughts)
        if said := answer.answer_text or (NOT_RECORDED if answer.is_wordless and answer.tokens.count else ""):
            conversation.write("answer", said)
        conversation.end(closing(chat.ended[answer_id]))
        if answer.ended is not None and answer.ended.fault is not None:
            conversation.remark(f"{answer.ended.fault.message} {answer.ended.fault.help}".strip(), of_answer=True)


def kept_settings(own: Sampler, usual: Sampler) -> str:
    """Which settings a chat keeps that new chats do not have, in a sentence; empty where there are none."""
    if own == usual:
        return ""
    from homeai.app.chat_settings_screen import FIELDS

    told = [f"{field.label} {field.show(own)}" for field in FIELDS if field.show(own) != field.show(usual)]
    return f"This chat goes on with its own settings: {', '.join(told)}." if told else ""


def cost(state: SessionState, talk: Talk, model_path: str | None) -> str:
    """What the next question of a chat costs, in a sentence, with the model that reads it."""
    last = state.answers[talk.answer_ids[-1]]
    if last.is_wordless:
        return "No words of this chat were recorded, so the model does not know what was said."
    if last.tokenised is None:
        return "The whole chat is read once more with your next question."
    tokens = last.tokenised.prompt + last.tokens.count
    # Comes with the rates of prompts and answers, which the first paint need not wait for.
    from homeai.explain.predict import reread_ns

    reading_ns = reread_ns(state, model_path, tokens)
    time = "" if reading_ns is None else f": about {rough_span(reading_ns)} by the rates so far"
    return f"The whole chat, about {units.count(tokens)} tokens, is read once more with your next question{time}."
