"""The keys of a box in the order in which they were pressed."""

from __future__ import annotations

from textual import events
from textual.widget import Widget


async def act_at_once(box: Widget, event: events.Key) -> None:
    """Do what a key means to a box now, if it means anything.

    Textual would do it after all keys that wait: of a title that is typed fast over an old one, the beginning went with
    the old one.
    """
    for binding in box._bindings.key_to_bindings.get(event.key, ()):
        if not binding.priority and await box.app.run_action(binding.action, box):
            event.stop()
            event.prevent_default()
            return
