"""Our themes: one quiet ground, one accent, and a second colour only where two bars meet."""

from __future__ import annotations

from typing import Any

from textual.app import App
from textual.filter import LineFilter, Monochrome, NoColor
from textual.theme import Theme

from widgets.ascii import AsciiOnly

DARK = Theme(
    name="homeai-dark",
    dark=True,
    primary="#7cc4b8",
    secondary="#8fa3bf",
    accent="#d9b27c",
    foreground="#d8dee6",
    background="#14171c",
    surface="#191d23",
    panel="#20252d",
    success="#8fc48a",
    warning="#e0b860",
    error="#e58a80",
)
LIGHT = Theme(
    name="homeai-light",
    dark=False,
    primary="#1f7a6c",
    secondary="#4d6480",
    accent="#96631a",
    foreground="#23282f",
    background="#faf9f6",
    surface="#f3f1ec",
    panel="#e9e6df",
    success="#3c7a36",
    warning="#8a6100",
    error="#a8362b",
)
TERMINAL = Theme(
    name="homeai-terminal",
    ansi=True,
    dark=True,
    primary="ansi_cyan",
    secondary="ansi_blue",
    accent="ansi_yellow",
    foreground="ansi_default",
    background="ansi_default",
    surface="ansi_default",
    panel="ansi_default",
    boost="ansi_default",
    success="ansi_green",
    warning="ansi_yellow",
    error="ansi_red",
    variables={
        "ansi-background": "ansi_default",
        "ansi-foreground": "ansi_default",
        # Half-transparent colours cannot be had from a palette; this grey is readable on black and on white.
        "foreground-muted": "ansi_bright_black",
        "text-muted": "ansi_bright_black",
        "text-disabled": "ansi_bright_black",
        "border": "ansi_bright_black",
        "border-blurred": "ansi_bright_black",
        "scrollbar": "ansi_bright_black",
        "scrollbar-hover": "ansi_cyan",
        "scrollbar-active": "ansi_cyan",
        "scrollbar-background": "ansi_default",
        "scrollbar-background-hover": "ansi_default",
        "scrollbar-background-active": "ansi_default",
        "block-cursor-foreground": "ansi_black",
        "block-cursor-background": "ansi_cyan",
        "input-cursor-background": "ansi_default",
        "input-cursor-foreground": "ansi_default",
        "input-cursor-text-style": "reverse",
        "input-selection-background": "ansi_cyan",
        "input-selection-foreground": "ansi_black",
        "screen-selection-background": "ansi_cyan",
        "screen-selection-foreground": "ansi_black",
    },
)
"""The terminal's own colours, whatever they are; also what there is when colours are not wanted."""


def dress(app: App[Any], theme: str | None, filters: list[LineFilter], *, ascii_only: bool) -> bool:
    """Give an application its theme, and its filters of what is drawn; False when there is no theme of that name."""
    for own in (DARK, LIGHT, TERMINAL):
        app.register_theme(own)
    is_known = theme is None or theme in app.available_themes
    usual = TERMINAL.name if app.no_color else DARK.name
    app.theme = usual if theme is None or not is_known else theme
    if app.no_color:
        # Textual's own answer to NO_COLOR is shades of grey, which some terminals show as no contrast at all.
        filters[:] = [*(one for one in filters if not isinstance(one, Monochrome)), NoColor()]
    if ascii_only:
        filters.append(AsciiOnly())
    return is_known
