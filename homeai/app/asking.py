"""Asking and stopping: from the box to the session, also while there is no session yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from homeai.app import slash
from homeai.app.chat_screen import welcome
from homeai.app.desk import Alert, Editing
from homeai.errors import HomeaiError

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp
    from homeai.app.bridge import SessionLike
    from homeai.app.desk import OpenChat


def submit(app: HomeaiApp, text: str, pressed_at_ns: int) -> None:
    """Take what was typed: a command, or the current chat's next question. What cannot be taken stays in the box."""
    chat, prompt = app.desk.current, app.chat_screen.prompt
    if not text.strip():
        return
    app.catch_up()
    if (call := slash.parse(text)) is not None:
        slash.run(app, call)
        return
    if chat.is_busy:
        stop_key, new_key = app.keys.words("stop"), app.keys.words("new_chat")
        app.notify(f"One answer at a time in a chat: {stop_key} stops this one, {new_key} begins another.", timeout=4)
        return
    question, editing = slash.unescaped(text), chat.editing
    replaces = None if editing is None else editing.answer_id
    if app.session is not None:
        if not ask(app, app.session, chat, question, pressed_at_ns, replaces):
            return
    elif app.has_no_session:
        app.notify(f"There is no model to ask. {app.choosing.way_out}", timeout=4)
        return
    else:
        chat.hold(question, pressed_at_ns, replaces)
        app.chat_screen.talk(chat.number).ask(question)
    chat.editing = None
    app.keep_in_history(text)
    prompt.accepted("" if editing is None else editing.draft)
    app.redraw()


def ask_waiting(app: HomeaiApp, session: SessionLike) -> None:
    """Ask what was asked before the session was there."""
    for chat in app.desk:
        if chat.waiting is not None:
            ask(app, session, chat, chat.waiting.text, chat.waiting.pressed_at_ns, chat.waiting.replaces)


def ask(
    app: HomeaiApp,
    session: SessionLike,
    chat: OpenChat,
    text: str,
    pressed_at_ns: int,
    replaces: int | None = None,
) -> bool:
    """Ask a question, which the conversation may show already; False, with an alert, when the session refused it.

    Args:
        app: Where it is shown.
        session: Who is asked.
        chat: Whose next question it is.
        text: The question.
        pressed_at_ns: When the user wanted it asked.
        replaces: The chat's last answer, whose place the new one takes.
    """
    waited = chat.waiting is not None
    try:
        chat.chat = chat.chat or session.open_chat(chat.system)
        answer_id = session.ask(chat.chat, text, sampler=chat.sampler, submitted_at_ns=pressed_at_ns, replaces=replaces)
    except HomeaiError as error:
        give_back(app, chat)
        chat.alert = Alert(error.fault)
        app.redraw()
        return False
    chat.begin(answer_id, text, replaces)
    app.desk.alert = None
    talk = app.chat_screen.talk(chat.number)
    if replaces is not None:
        if waited:
            talk.retract()  # so long it stood below what it replaces
        talk.retract()
    if replaces is not None or not waited:
        talk.ask(text)
    app.redraw()
    return True


def ask_again(app: HomeaiApp) -> None:
    """Ask the last question once more; the new answer takes the place of the old one, whose figures stay."""
    chat = app.desk.current
    if app.session is None or not _can_replace(app, chat, "ask_again"):
        return
    if chat.editing is not None:
        send_key, stop_key = app.keys.words("send"), app.keys.words("stop")
        app.notify(f"You are changing this question: {send_key} asks it, {stop_key} leaves it as it was.", timeout=4)
        return
    ask(app, app.session, chat, chat.question, app.at_ns, replaces=chat.newest_id)


def edit_question(app: HomeaiApp) -> None:
    """Put the last question into the box to be changed and asked anew; a second time leaves it as it was."""
    chat, prompt = app.desk.current, app.chat_screen.prompt
    if chat.editing is not None:
        leave_editing(app)
    elif _can_replace(app, chat, "edit_question") and chat.newest_id is not None:
        chat.editing = Editing(chat.newest_id, prompt.draft)
        prompt.show_text(slash.escaped(chat.question))
        app.redraw()


def leave_editing(app: HomeaiApp) -> None:
    """Leave the last question as it was; what stood in the box before comes back."""
    chat = app.desk.current
    if chat.editing is not None:
        draft, chat.editing = chat.editing.draft, None
        app.chat_screen.prompt.show_text(draft)
        app.redraw()


def editing_words(app: HomeaiApp) -> str:
    """What the line above the box says while a question is being changed; empty while none is."""
    chat = app.desk.current
    if chat.editing is None:
        return ""
    send_key, stop_key = app.keys.words("send"), app.keys.words("stop")
    words = f"changing your last question: {send_key} asks it anew, {stop_key} leaves it"
    load = None if app.session is None else app.session.state.load
    if load is None or load.loaded is None or not load.resident or chat.editing.answer_id == chat.first_id:
        return words
    if load.loaded.ended.model.rolls_back:
        return f"{words} · what was said before it stays in memory"
    return f"{words} · this model then reads the whole chat again"


def _can_replace(app: HomeaiApp, chat: OpenChat, command_id: str) -> bool:
    """Whether the chat's last answer can be replaced now; says why not."""
    stop_key, key = app.keys.words("stop"), app.keys.words(command_id)
    if chat.is_busy:
        app.notify(f"This answer is still being written: {stop_key} stops it, then press {key} again.", timeout=4)
    elif chat.newest_id is None:
        app.notify("Nothing was asked in this chat yet.", timeout=4)
    else:
        return True
    return False


def set_system(app: HomeaiApp, text: str | None) -> None:
    """Give the current chat this system text from its next question on; None means the model's own."""
    chat = app.desk.current
    chat.system = text or None
    if app.session is not None and chat.chat is not None:
        app.session.set_system(chat.chat, chat.system)


def stop(app: HomeaiApp, chat: OpenChat) -> None:
    """Stop a chat's answer; a question that still waits for the session comes back into the box."""
    if chat.waiting is not None:
        give_back(app, chat)
        app.redraw()
    elif app.session is not None and chat.live_id is not None:
        app.session.stop(chat.live_id)


def give_back(app: HomeaiApp, chat: OpenChat) -> None:
    """Put a question that waited and cannot be asked back where it was typed; beside a draft, where Up finds it."""
    if chat.waiting is None:
        return
    text, replaces, chat.waiting = slash.escaped(chat.waiting.text), chat.waiting.replaces, None
    talk = app.chat_screen.talk(chat.number)
    talk.retract()
    if chat.is_blank:
        chat.title = ""
        talk.welcome(welcome(app.keys))
    is_shown, prompt = chat is app.desk.current, app.chat_screen.prompt
    if prompt.text if is_shown else chat.draft:
        put_away(app, [text])
        return
    if is_shown:
        prompt.show_text(text)
    else:
        chat.draft = text
    if replaces is not None:
        chat.editing = Editing(replaces, "")


def unsent(app: HomeaiApp, chat: OpenChat) -> list[str]:
    """What was typed in a chat and not asked: what stands in its box, what stood there before it, what waits."""
    texts = [app.chat_screen.prompt.draft if chat is app.desk.current else chat.draft]
    if chat.editing is not None:
        texts.append(chat.editing.draft)
    if chat.waiting is not None:
        texts.append(slash.escaped(chat.waiting.text))
    return texts


def put_away(app: HomeaiApp, texts: Sequence[str]) -> None:
    """Keep questions that lose their place where Up finds them, and say so."""
    kept = [text for text in texts if text.strip()]
    for text in kept:
        app.chat_screen.prompt.keep(text)
    if kept:
        app.notify(f"Up brings back your {'question' if len(kept) == 1 else f'{len(kept)} questions'}.", timeout=6)
