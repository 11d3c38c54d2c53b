"""A long Markdown answer of an exact length: prose, lists, tables, code, the same for everybody."""

from __future__ import annotations

import random

from tests.engine.script import cut

_WORDS = tuple(
    "river mill stone letter garden winter lamp bridge song harbour glass wheel north paper cloud silver field "  # noqa: SIM905
    "engine morning table answer window market copper forest signal island thread canvas ladder".split()
)


def document(tokens: int, last_word: str, *, code_lines: int = 0) -> str:
    """Markdown of so many tokens as the scripted backend cuts it, the last of them a word of its own.

    Sections of mixed Markdown; with `code_lines` a block of so many lines of code stands in the middle, with as much
    before it as after it.

    Raises:
        ValueError: The code alone is longer than the document.
    """
    code = _code(code_lines) if code_lines else ""
    around = tokens - 1 - len(cut(code))
    if around < 0:
        raise ValueError(f"{code_lines} lines of code are more than {tokens} tokens")
    before = around // 2 if code else 0
    return f"{_mixed(before, 0)}{code}{_mixed(around - before, 1000)}{last_word}"


def _mixed(tokens: int, seed: int) -> str:
    """Sections while they fit, then plain words."""
    pieces: list[str] = []
    while len(section := cut(_section(seed))) <= tokens - len(pieces):
        pieces += section
        seed += 1
    chosen = random.Random(seed)
    return "".join(pieces + [f"{chosen.choice(_WORDS)} " for _ in range(tokens - len(pieces))]).rstrip(" ") + (
        "\n\n" if tokens else ""
    )


def _section(seed: int) -> str:
    """About 250 tokens: a heading, prose, both kinds of lists, a table, a few lines of code."""
    chosen = random.Random(seed)

    def words(count: int) -> str:
        return " ".join(chosen.choice(_WORDS) for _ in range(count))

    items = "".join(f"- **{words(1)}**: {words(7)}\n" for _ in range(5))
    steps = "".join(f"{number}. {words(6)} `{words(1)}`\n" for number in range(1, 5))
    rows = "".join(f"| {words(1)} | {words(1)} | {chosen.randrange(1000)} |\n" for _ in range(6))
    return (
        f"## {words(3).capitalize()}\n\n"
        f"The {words(24)}, *{words(2)}* and `{words(1)}`; {words(12)}. See **{words(2)}**, then {words(10)}.\n\n"
        f"{items}\n{steps}\n"
        f"| name | place | count |\n|---|---|---:|\n{rows}\n"
        f"{_code(6, seed)}"
        f"And {words(18)}.\n\n"
    )


def _code(lines: int, seed: int = 0) -> str:
    chosen = random.Random(seed)

    def line(number: int) -> str:
        name, function, value = (chosen.choice(_WORDS) for _ in range(3))
        return f"    {name}_{number} = {function}({number}, '{value}') #{number}\n"

    return f"```python\n{''.join(map(line, range(lines)))}```\n\n"
