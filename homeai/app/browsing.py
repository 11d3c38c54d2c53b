"""Which of a chat's answers the figures are of."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp


def earlier(app: HomeaiApp) -> None:
    """Show the figures of the answer before."""
    _browse(app, -1)


def later(app: HomeaiApp) -> None:
    """Show the figures of the answer after."""
    _browse(app, 1)


def _browse(app: HomeaiApp, step: int) -> None:
    chat = app.desk.current
    if chat.browse(step):
        app.redraw()
    elif chat.answer_ids:
        app.notify(f"This is the {'first' if step < 0 else 'newest'} answer of this chat.", timeout=2)
