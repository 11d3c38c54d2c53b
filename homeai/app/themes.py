"""Our two themes: one quiet ground, one accent, and a second colour only where two bars meet."""

from __future__ import annotations

from textual.theme import Theme

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
