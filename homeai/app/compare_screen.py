"""F6: two answers side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp


def turn_compare(app: HomeaiApp) -> None:
    """Open the page, or close it where it is open."""
    app.notify("Two answers can be compared soon.", timeout=2)
