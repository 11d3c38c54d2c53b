"""A model's Markdown as HTML in which nothing loads, leads away or runs.

HTML in the text is text. Pictures become their description and address, links their words and address: nothing in it
can be clicked. Control characters are visible stand-ins.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

from homeai.markdown_rows import keep_every_cell
from homeai.units import printable

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

DEEPEST = 50
"""Levels of lists and quotations: each takes some of Python's stack."""
_ALIGN = re.compile(r"text-align:(left|center|right)")


def plain(text: str) -> str:
    """Return a text as HTML text or as the value of an attribute; line ends stay."""
    return escape(printable(text.replace("\r\n", "\n")))


def on_one_line(text: str) -> str:
    """The same for a place where there is one line."""
    return " ".join(plain(text).split())


def prose(markdown: str) -> str:
    """Return the Markdown of an answer as HTML, every word of it; what nests too deep to be drawn stays as it is."""
    parser = _parser()
    tokens = parser.parse(printable(markdown.replace("\r\n", "\n")))
    # The parser leaves out what is deeper.
    if any(token.level >= DEEPEST - 1 for token in tokens):
        return f'<p class="plain">{plain(markdown)}</p>\n'
    html: str = parser.renderer.render(tokens, parser.options, {})
    return html


@cache
def _parser() -> MarkdownIt:
    # Not at the top: who exports a table needs none of it.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": DEEPEST})
    # Definitions of links would not be seen.
    keep_every_cell(parser.enable(["table", "strikethrough"]).disable("reference"))
    for name, rule in {
        "image": _image,
        "link_open": _nothing,
        "link_close": _link_end,
        "th_open": _aligned,
        "td_open": _aligned,
        "fence": _code,
        "code_block": _code,
    }.items():
        parser.add_render_rule(name, rule)
    return parser


def _nothing(_self: Any, _tokens: Sequence[Token], _index: int, _options: Any, _env: Any) -> str:
    return ""


def _image(_self: Any, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    token = tokens[index]
    return f"{escape(token.content)}{_address(str(token.attrs.get('src', '')), token)}"


def _link_end(_self: Any, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    """The address, unless it is what was just read."""
    depth = 0
    words: list[str] = []
    for token in reversed(tokens[:index]):
        if token.type == "link_close":
            depth += 1
        elif token.type == "link_open":
            if depth == 0:
                href = str(token.attrs.get("href", ""))
                return "" if "".join(reversed(words)) == href else _address(href, token)
            depth -= 1
        words.append(token.content)
    return ""


def _address(of: str, token: Token) -> str:
    title = str(token.attrs.get("title", ""))
    shown = " ".join(part for part in (of, f'"{title}"' if title else "") if part)
    return f' <span class="address">({escape(shown)})</span>' if shown else ""


def _aligned(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """A class in place of the style that the page forbids."""
    token = tokens[index]
    side = _ALIGN.search(str(token.attrs.pop("style", "")))
    if side is not None:
        token.attrs["class"] = side[1]
    rendered: str = self.renderToken(tokens, index, options, env)
    return rendered


def _code(_self: Any, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    token = tokens[index]
    language = f"<small>{escape(token.info.strip())}</small>" if token.info.strip() else ""
    return f"<pre>{language}<code>{escape(token.content)}</code></pre>\n"
