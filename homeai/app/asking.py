"""Asking and stopping: from the box to the session, also while there is no session yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from homeai.app.desk import Alert
from homeai.errors import HomeaiError

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp
    from homeai.app.bridge import SessionLike
    from homeai.app.desk import OpenChat


def submit(app: HomeaiApp, text: str, pressed_at_ns: int) -> bool:
    """Ask the current chat's next question; False leaves it in the box."""
    chat = app.desk.current
    if not text.strip():
        return False
    if chat.is_busy:
        stop_key, new_key = app.keys.words("stop"), app.keys.words("new_chat")
        app.notify(f"One answer at a time in a chat: {stop_key} stops this one, {new_key} begins another.", timeout=4)
        return False
    if app.session is not None:
        return ask(app, app.session, chat, text, pressed_at_ns)
    if app.has_no_session:
        return False
    chat.hold(text, pressed_at_ns)
    app.chat_screen.talk(chat.number).ask(text)
    app.redraw()
    return True


def ask_waiting(app: HomeaiApp, session: SessionLike) -> None:
    """Ask what was asked before the session was there."""
    for chat in app.desk:
        if chat.waiting is not None:
            ask(app, session, chat, chat.waiting.text, chat.waiting.pressed_at_ns)


def ask(app: HomeaiApp, session: SessionLike, chat: OpenChat, text: str, pressed_at_ns: int) -> bool:
    """Ask a question, which the conversation may show already; False, with an alert, when the session refused it."""
    waited = chat.waiting is not None
    try:
        chat.chat = chat.chat or session.open_chat(chat.system)
        answer_id = session.ask(chat.chat, text, sampler=chat.sampler, submitted_at_ns=pressed_at_ns)
    except HomeaiError as error:
        give_back(app, chat)
        chat.alert = Alert(error.fault)
        app.redraw()
        return False
    chat.begin(answer_id, text)
    app.desk.alert = None
    if not waited:
        app.chat_screen.talk(chat.number).ask(text)
    app.redraw()
    return True


def stop(app: HomeaiApp, chat: OpenChat) -> None:
    """Stop a chat's answer; a question that still waits for the session comes back into the box."""
    if chat.waiting is not None:
        give_back(app, chat)
        app.redraw()
    elif app.session is not None and chat.live_id is not None:
        app.session.stop(chat.live_id)


def give_back(app: HomeaiApp, chat: OpenChat) -> None:
    """Put a question that waited and cannot be asked back into the box, or beside it while another chat is shown."""
    if chat.waiting is None:
        return
    text, chat.waiting = chat.waiting.text, None
    app.chat_screen.talk(chat.number).end(None)
    if chat is app.desk.current:
        app.chat_screen.prompt.give_back(text)
    else:
        chat.draft = chat.draft or text
