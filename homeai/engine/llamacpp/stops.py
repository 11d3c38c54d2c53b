"""Stop strings across token boundaries: nothing half-shown, nothing lost.

The end is where the *first stop string becomes complete*: with the stops `abcdef` and `cd` the text `abcdef` ends
after `ab`. It is the moment at which a model should be stopped, and the only rule whose result depends neither on how
the text was cut into tokens nor on tokens that are not written yet. Of two that end at the same character the longer
one counts, so that no part of it is shown.
"""

from __future__ import annotations

from collections.abc import Iterable


def held_length(text: str, targets: Iterable[str]) -> int:
    """Return the length of the longest tail of `text` that is the beginning, but not the whole, of a target."""
    longest = 0
    for target in targets:
        # The tail must start with the target's first character: one C search rejects nearly every text.
        at = text.find(target[0], max(0, len(text) - len(target) + 1))
        while at != -1 and len(text) - at > longest:
            if target.startswith(text[at:]):
                longest = len(text) - at
                break
            at = text.find(target[0], at + 1)
    return longest


class StopFilter:
    """Lets text through up to the first stop string, holding back a tail that may still become one.

    At most one character less than the longest stop string is held. Empty stop strings are ignored.
    """

    __slots__ = ("_held", "_stops", "hidden", "matched")

    def __init__(self, stops: Iterable[str] = ()) -> None:
        self._stops = tuple(stop for stop in dict.fromkeys(stops) if stop)
        self._held = ""
        self.matched: str | None = None
        """The stop string that ended the text; None while none has."""
        self.hidden = ""
        """The stop string and what came after it in the same and in later calls."""

    @property
    def held(self) -> str:
        """The tail that waits for what comes next."""
        return self._held

    def feed(self, text: str) -> str:
        """Return what can be shown now."""
        if not self._stops:
            return text
        if self.matched is not None:
            self.hidden += text
            return ""
        window = self._held + text
        first: tuple[int, int] | None = None
        for stop in self._stops:
            start = window.find(stop)
            if start == -1:
                continue
            found = (start + len(stop), start)
            if first is None or found < first:
                first, self.matched = found, stop
        if first is not None:
            shown, self.hidden, self._held = window[: first[1]], window[first[1] :], ""
            return shown
        keep = held_length(window, self._stops)
        if not keep:
            self._held = ""
            return window
        self._held = window[-keep:]
        return window[:-keep]

    def flush(self) -> str:
        """Return the held tail: the text ended before it became a stop string."""
        tail, self._held = self._held, ""
        return tail
