"""Reads one block of Markdown into parts that `prose` lays out.

Textual's own `Markdown` makes a widget of every paragraph, bullet and list item: an eight-item list costs 99 ms of
processor time to show. As one widget with lines laid out by us it costs 9 ms, and the open block of a streaming answer
looks the same as it will when it is finished. Links are text: nothing in an answer can be clicked or opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from textual.content import Content, Span

from homeai.markdown_rows import keep_every_cell
from widgets.blocks import Block
from widgets.figures import MUTED
from widgets.foreign import on_one_line, shown
from widgets.prose import Part, Row, Rule, Table, plain

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

INLINE_CODE = "$text-accent"
HEADING = "bold $text-primary"
BULLETS = ("•", "◦", "▪")
DEEPEST = 40
"""Levels of lists and quotations; each takes two columns and some of Python's stack."""


def parts(block: Block, *, highlight: bool = False) -> tuple[Part, ...]:
    """Read the Markdown of a block, every word that Markdown shows; what nests too deep to be drawn stays as it is.

    `highlight` colours its code, which only a finished block is worth.
    """
    tokens = _parser().parse(block.source)
    # The parser leaves out what is deeper.
    if any(token.level >= DEEPEST - 1 for token in tokens):
        return plain(block.source)
    reader = _Reader(highlight=highlight, headless=block.continues)
    reader.read(tokens)
    return tuple(reader.parts)


@cache
def _parser() -> MarkdownIt:
    # Not at the top: 80 ms that the first paint need not wait for.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": DEEPEST})
    # Definitions of links, and notes that look like them, would not be seen.
    return keep_every_cell(parser.enable(["table", "strikethrough"]).disable("reference"))


@dataclass(slots=True)
class _Reader:
    """Walks the parser's tokens and keeps the indentation."""

    highlight: bool
    headless: bool
    parts: list[Part] = field(default_factory=list)
    _indents: list[str] = field(default_factory=list)
    """Before every line of what is being read, from the outermost list or quotation inwards."""
    _marker: str | None = None
    """Of a list item whose first paragraph has not come yet: stands in the place of the innermost indentation."""
    _numbers: list[int | None] = field(default_factory=list)
    """The next number of each list that is open; None for bullets."""
    _tight: list[bool] = field(default_factory=list)

    def read(self, tokens: Sequence[Token]) -> None:
        index = 0
        while index < len(tokens):
            token = tokens[index]
            match token.type:
                case "inline":
                    style = HEADING if tokens[index - 1].type == "heading_open" else ""
                    self._separate()
                    self._text(inline(token.children or [], style))
                case "fence" | "code_block":
                    self._separate()
                    self._code(token.content.removesuffix("\n"), token.info.split(maxsplit=1)[0] if token.info else "")
                case "html_block":
                    self._separate()
                    self._text(Content(shown(token.content.rstrip("\n"))))
                case "hr":
                    self._separate()
                    self.parts.append(Rule())
                case "bullet_list_open" | "ordered_list_open":
                    start = token.attrs.get("start", 1)
                    self._numbers.append(int(start) if token.type == "ordered_list_open" else None)
                    self._tight.append(_is_tight(tokens, index))
                case "bullet_list_close" | "ordered_list_close":
                    self._numbers.pop()
                    self._tight.pop()
                case "list_item_open":
                    self._open_item()
                case "list_item_close":
                    if self._marker is not None:  # an empty item
                        self._text(Content(""))
                    self._indents.pop()
                case "blockquote_open":
                    self._indents.append("▎ ")
                case "blockquote_close":
                    self._indents.pop()
                case "table_open":
                    self._separate()
                    index = self._table(tokens, index)
            index += 1

    def _separate(self) -> None:
        """A blank line between paragraphs, but not inside a tight list and not before an item's own first line."""
        if self.parts and not (self._tight and self._tight[-1]) and not (len(self._tight) > 1 and self._marker):
            self.parts.append(Row(Content(""), *2 * ("".join(self._outer()),)))

    def _outer(self) -> list[str]:
        return self._indents[:-1] if self._marker is not None else self._indents

    def _open_item(self) -> None:
        number = self._numbers[-1]
        if number is None:
            depth = sum(1 for each in self._numbers if each is None) - 1
            self._marker = BULLETS[depth % len(BULLETS)] + " "
        else:
            self._marker = f"{number}. "
            self._numbers[-1] = number + 1
        self._indents.append(" " * len(self._marker))

    def _leads(self) -> tuple[str, str]:
        rest = "".join(self._indents)
        first = "".join([*self._indents[:-1], self._marker]) if self._marker is not None else rest
        self._marker = None
        return first, rest

    def _text(self, text: Content) -> None:
        first, rest = self._leads()
        for index, line in enumerate(text.split("\n", allow_blank=True) or [text]):
            self.parts.append(Row(line, first if index == 0 else rest, rest))

    def _code(self, source: str, language: str) -> None:
        first, rest = self._leads()
        code = shown(source)
        for index, line in enumerate(_coloured(code, language) if self.highlight else map(Content, code.split("\n"))):
            self.parts.append(Row(line, first if index == 0 else rest, rest, code=True))

    def _table(self, tokens: Sequence[Token], index: int) -> int:
        rows: list[tuple[Content, ...]] = []
        cells: list[Content] = []
        while tokens[index].type != "table_close":
            if tokens[index].type == "tr_open":
                cells = []
            elif tokens[index].type == "tr_close":
                rows.append(tuple(cells))
            elif tokens[index].type == "inline":
                cells.append(inline(tokens[index].children or [], ""))
            index += 1
        self.parts.append(Table(tuple(rows), self._leads()[0], headless=self.headless))
        return index


def _is_tight(tokens: Sequence[Token], index: int) -> bool:
    """Whether the list that opens here has no blank lines between its items: the parser hides their paragraphs."""
    level = tokens[index].level
    for token in tokens[index + 1 :]:
        if token.level == level and token.type.endswith("list_close"):
            break
        if token.type == "paragraph_open" and token.level == level + 2:
            return bool(token.hidden)
    return True


def inline(tokens: Sequence[Token], style: str) -> Content:
    """A run of text with its emphasis; foreign text throughout, none of it read as Textual's markup."""
    text = ""
    spans: list[Span] = []
    opened: list[tuple[str, int]] = []
    for token in tokens:
        match token.type:
            case "text" | "html_inline" | "text_special":
                text += shown(token.content)
            case "softbreak":
                text += " "
            case "hardbreak":
                text += "\n"
            case "code_inline":
                start, text = len(text), text + shown(token.content)
                spans.append(Span(start, len(text), INLINE_CODE))
            case "strong_open":
                opened.append(("bold", len(text)))
            case "em_open":
                opened.append(("italic", len(text)))
            case "s_open":
                opened.append(("strike", len(text)))
            case "link_open":
                opened.append(("underline", len(text)))
            case "image":
                start, text = (
                    len(text),
                    f"{text}[{shown(token.content)}]({on_one_line(str(token.attrs.get('src', '')))})",
                )
                spans.append(Span(start, len(text), MUTED))
            case "strong_close" | "em_close" | "s_close":
                kind, start = opened.pop()
                spans.append(Span(start, len(text), kind))
            case "link_close":
                kind, start = opened.pop()
                spans.append(Span(start, len(text), kind))
                target = on_one_line(str(_link_target(tokens, token)))
                if target and target != text[start:]:
                    # Said, not hidden: a link's words may name another place than its target.
                    begin, text = len(text), f"{text} ({target})"
                    spans.append(Span(begin, len(text), MUTED))
    if style:
        spans.insert(0, Span(0, len(text), style))
    return Content(text, spans)


def _link_target(tokens: Sequence[Token], closing: Token) -> str:
    target = ""
    for token in tokens:
        if token is closing:
            break
        if token.type == "link_open":
            target = str(token.attrs.get("href", ""))
    return target


def _coloured(code: str, language: str) -> list[Content]:
    from textual.highlight import HighlightTheme, highlight

    # A language it does not know is plain text; without one it would run every lexer over the code to guess.
    return list(highlight(code, language=language or "text", theme=HighlightTheme).split("\n", allow_blank=True))
