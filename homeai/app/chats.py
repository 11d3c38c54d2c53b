"""The commands of the conversation and of the chats that are open beside each other."""

from __future__ import annotations

from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from homeai.app import asking, copying
from homeai.app.files import write_dated
from widgets.foreign import on_one_line

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp
    from homeai.app.desk import OpenChat

SURE_WITHIN_S = 4.0
"""So long the second press of the key that closes a chat is waited for, and its hint shown."""


def stop(app: HomeaiApp) -> None:
    """Stop the current chat's answer, or take its waiting question back; else leave editing, else stop a load."""
    chat = app.desk.current
    if chat.editing is not None and not chat.is_busy:
        asking.leave_editing(app)
    elif app.is_loading:
        app.choosing.stop_load()
    else:
        asking.stop(app, chat)


def copy_or_stop(app: HomeaiApp) -> None:
    """Copy the selected text; without one stop the answer or the load of the chat; without those say how to quit."""
    if copying.copy_selection(app):
        return
    if app.situation().on_chat and (app.desk.current.is_busy or app.is_loading):
        stop(app)
    else:
        app.notify(f"{app.keys.words('quit') or 'The list of commands'} quits.", timeout=3)


def quit_if_sure(app: HomeaiApp) -> None:
    """Quit; while answers are written, at the second press only. A replay loses nothing."""
    answers = {} if app.session is None else app.session.state.answers
    # By the state, which the screen shows too: the fact of an end is heard up to a tick later.
    ended = {answer_id for answer_id, answer in answers.items() if answer.ended is not None}
    writing, now = sum(chat.live_id not in ended for chat in app.desk.live), monotonic()
    if not writing or app.replaying is not None or now < app.quitting_until_s:
        app.exit()
        return
    app.quitting_until_s = now + SURE_WITHIN_S
    what = "An answer is" if writing == 1 else f"{writing} answers are"
    app.notify(f"{what} being written. {app.keys.words('quit')} again quits.", timeout=SURE_WITHIN_S)


def new_chat(app: HomeaiApp) -> None:
    """Open a chat beside the others, which go on; an empty one is not opened twice."""
    blank = next((chat for chat in app.desk if chat.is_blank), None)
    go_to(app, blank or app.desk.open())


def next_chat(app: HomeaiApp) -> None:
    """Go to the next tab."""
    go_to(app, app.desk.beside(1))


def previous_chat(app: HomeaiApp) -> None:
    """Go to the tab before."""
    go_to(app, app.desk.beside(-1))


def close_chat_if_sure(app: HomeaiApp) -> None:
    """Close the current chat; where something was said in it, at the second press only."""
    chat, now = app.desk.current, monotonic()
    if chat.is_blank or (chat.number == app.closing[0] and now < app.closing[1]):
        close_chat(app)
        return
    app.closing = (chat.number, now + SURE_WITHIN_S)
    app.notify(f"{app.keys.words('close_chat')} again closes this chat for good.", timeout=SURE_WITHIN_S)


def close_chat(app: HomeaiApp) -> None:
    """Stop the current chat's answer and take the chat away; what was typed in it is kept."""
    chat = app.desk.current
    unsent, chat.waiting = asking.unsent(app, chat), None
    asking.stop(app, chat)
    app.desk.close(chat)
    app.chat_screen.close_talk(chat.number)
    app.clear_notifications()
    _show_current(app)
    asking.put_away(app, unsent)


def clear(app: HomeaiApp) -> OpenChat:
    """Take all chats away without stopping anything, and return the new one that is shown in their place."""
    app.desk.clear()
    app.chat_screen.clear_talks(app.desk.current.number)
    return app.desk.current


def go_to(app: HomeaiApp, chat: OpenChat) -> None:
    """Show a chat: its conversation, its draft, its figures."""
    if chat is not app.desk.current:
        app.desk.current.draft = app.chat_screen.prompt.draft
        app.desk.show(chat)
        _show_current(app)


def _show_current(app: HomeaiApp) -> None:
    chat, prompt = app.desk.current, app.chat_screen.prompt
    app.chat_screen.show_talk(chat.number)
    prompt.show_text(chat.draft)
    app.redraw()


def toggle_folded(app: HomeaiApp) -> None:
    """Show or hide what the model thought before it answered, and all of long questions."""
    app.chat_screen.conversation.toggle_folded()


def scroll_up(app: HomeaiApp) -> None:
    """Go back in the conversation, wherever the cursor is."""
    app.chat_screen.conversation.page_up()


def scroll_down(app: HomeaiApp) -> None:
    """Go on in the conversation."""
    app.chat_screen.conversation.page_down()


def to_end(app: HomeaiApp) -> None:
    """Go to the end of the conversation, and follow it from there."""
    app.chat_screen.conversation.to_end()


def save_picture(app: HomeaiApp) -> None:
    """Save the screen as an SVG picture, once the list of commands is gone from it."""
    app.set_timer(0.1, partial(_save_picture, app))


def _save_picture(app: HomeaiApp) -> None:
    from platformdirs import user_downloads_path

    from homeai.places import at_home, state_dir

    downloads = user_downloads_path()
    folder = downloads if downloads.is_dir() else state_dir() / "pictures"
    try:
        path = write_dated(folder, "homeai", ".svg", app.export_screenshot())
    except OSError as error:
        reason = error.strerror or type(error).__name__
        app.notify(on_one_line(f"Could not save the picture: {reason}."), severity="warning", markup=False)
    else:
        app.notify(on_one_line(f"Saved the picture in {at_home(path)}"), timeout=8, markup=False)
