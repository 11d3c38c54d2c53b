"""What a terminal would show: enough of a terminal emulator for what Textual writes, colours left out."""

from __future__ import annotations

import codecs
import re

from rich.cells import get_character_cell_size

_PIECE = re.compile(
    r"(?P<text>[^\x00-\x1f\x7f\x9b]+)"
    r"|\x1b\[(?P<parameters>[0-9;:<=>?]*)[ -/]*(?P<final>[@-~])"
    r"|\x1b[\]P_^X].*?(?:\x07|\x1b\\)"
    r"|\x1b[ -/]*[0-OQ-WYZ\\`-~]"
    r"|(?P<control>[\x00-\x1a\x1c-\x1f\x7f\x9b])",
    re.DOTALL,
)


class Screen:
    """A grid of characters that is fed with what a program writes; what goes past the right edge is lost."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._cells = [[" "] * width for _ in range(height)]
        """A wide character is followed by an empty string."""
        self._x = self._y = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._unfinished = ""

    def feed(self, written: bytes) -> None:
        """Take bytes in; they may end in the middle of a character or of a control sequence."""
        text = self._unfinished + self._decoder.decode(written)
        position = 0
        while position < len(text) and (piece := _PIECE.match(text, position)) is not None:
            position = piece.end()
            if piece["text"] is not None:
                self._write(piece["text"])
            elif piece["final"] is not None:
                self._control(piece["parameters"], piece["final"])
            elif piece["control"] is not None:
                self._move(piece["control"])
        self._unfinished = text[position:]

    def rows(self, left: int = 0, top: int = 0, right: int | None = None, bottom: int | None = None) -> tuple[str, ...]:
        """The text of an area's rows, of all by default; `right` and `bottom` are the first that do not belong."""
        return tuple("".join(cells[left:right]) for cells in self._cells[top:bottom])

    def shows(self, text: str) -> bool:
        """Whether a row has this text."""
        return any(text in row for row in self.rows())

    def __str__(self) -> str:
        return "\n".join(row.rstrip() for row in self.rows())

    def _write(self, text: str) -> None:
        if not (0 <= self._y < self.height):
            return
        cells = self._cells[self._y]
        if text.isascii():
            end = min(self._x + len(text), self.width)
            cells[self._x : end] = text[: max(end - self._x, 0)]
            self._x += len(text)
            return
        for character in text:
            size = get_character_cell_size(character)
            if size == 0 and 0 < self._x <= self.width:
                cells[self._x - 1] += character
            elif self._x + size <= self.width:
                cells[self._x : self._x + size] = [character, ""][:size]
            self._x += size

    def _control(self, parameters: str, final: str) -> None:
        numbers = [int(number) if number.isdigit() else 0 for number in parameters.split(";")]
        first = max(numbers[0], 1)
        match final:
            case "H" | "f":
                self._y, self._x = first - 1, max(numbers[1] if len(numbers) > 1 else 1, 1) - 1
            case "A":
                self._y = max(self._y - first, 0)
            case "B":
                self._y += first
            case "C":
                self._x += first
            case "D":
                self._x = max(self._x - first, 0)
            case "G":
                self._x = first - 1
            case "K":
                self._clear(self._y, self._x)
            case "J":
                whole = numbers[0] >= 2
                self._clear(0 if whole else self._y, 0 if whole else self._x)
                for y in range(1 if whole else self._y + 1, self.height):
                    self._clear(y, 0)
            case _:  # colours and modes
                pass

    def _clear(self, y: int, x: int) -> None:
        if 0 <= y < self.height and x < self.width:
            self._cells[y][x:] = " " * (self.width - x)

    def _move(self, control: str) -> None:
        match control:
            case "\r":
                self._x = 0
            case "\n":
                self._x, self._y = 0, self._y + 1
            case "\b":
                self._x = max(self._x - 1, 0)
            case _:
                pass
