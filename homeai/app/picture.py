"""The application at one moment: the figures of the current chat, the tabs of all, and what commands depend on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.screen import Screen

from homeai.app.chat_screen import ChatScreen
from homeai.app.commands import Situation
from homeai.app.help_screen import HelpScreen
from homeai.metrics.context_now import context_now
from homeai.metrics.state import SessionState
from homeai.metrics.view import load_view
from homeai.platform.jobs import can_suspend_job
from widgets.frame import Frame, KeyWords
from widgets.tabs import Tab

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp


def frame_of(app: HomeaiApp, state: SessionState) -> Frame:
    """The figures at this moment."""
    now, chat = app.at_ns, app.desk.current
    titles = {other.live_id: other.title for other in app.desk.live if other.live_id is not None}
    keys = KeyWords(app.keys.words("later_answer"), app.keys.words("why"))
    explained = app.explaining.of(state, chat.shown_id, now)
    why = None if explained is None else explained[1]
    load, sign = load_view(state, now), "" if app.replaying is None else "REPLAY"
    shown, context = chat.shown_view(state, now), context_now(state, chat.answer_ids)
    return Frame(state, shown, context, load, chat.place, titles, now, keys, why, sign, app.targets)


def tabs_of(app: HomeaiApp, state: SessionState) -> tuple[Tab, ...]:
    """A tab for each chat, where there are several."""
    if len(app.desk) == 1:
        return ()
    return tuple(Tab(chat.title, chat.doing(state), chat is app.desk.current) for chat in app.desk)


def situation_of(app: HomeaiApp, screen: Screen[Any]) -> Situation:
    """What the availability of commands depends on, with this screen on top."""
    chat, driver = app.desk.current, app._driver
    return Situation(
        on_chat=isinstance(screen, ChatScreen),
        on_help=isinstance(screen, HelpScreen),
        over=str(getattr(screen, "COMMAND", "")),
        loading=app.is_loading,
        live=chat.is_busy,
        chats=len(app.desk),
        answers=len(chat.ended),
        has_records=app.records is not None,
        replaying=app.replaying is not None,
        can_measure=app.measuring.can,
        can_suspend=driver is not None and driver.can_suspend and can_suspend_job(),
    )
