"""What the chat screen is shown: the figures of the current chat, and the tabs of all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from homeai.metrics.context_now import context_now
from homeai.metrics.state import SessionState
from homeai.metrics.view import load_view
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
