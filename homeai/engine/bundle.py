"""Joining facts of one bundle, so that a fast model sends two messages a bundle and not two a token.

Only the stream of an answer is joined: its `Tokens` (columns put end to end) and its `Text` (strings joined). The two
are different columns of one story, so within a run of them each joins its own kind; every other fact ends the run, and
nothing moves across it. What a fold makes of the joined facts is what it makes of the single ones; so text that can be
seen is not joined to blank text before it, whose stamp would pass for that of the first visible word.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from homeai.engine.wire import AnyReport
from homeai.events import TOKEN_COLUMNS, Text, Tokens


def join(reports: Iterable[AnyReport]) -> list[AnyReport]:
    """Return the same story in as few messages as order allows, each at the place of its first part."""
    joined: list[list[AnyReport]] = []
    open_tokens: dict[int, list[AnyReport]] = {}
    open_text: dict[int, list[AnyReport]] = {}
    for report in reports:
        if not isinstance(report, Tokens | Text):
            open_tokens.clear()
            open_text.clear()
            joined.append([report])
            continue
        still_open = open_tokens if isinstance(report, Tokens) else open_text
        group = still_open.get(report.answer_id)
        if group is not None and _follows(group, report):
            group.append(report)
        else:
            # The other channel of an answer, or a row that does not follow, starts a message of its own.
            still_open[report.answer_id] = group = [report]
            joined.append(group)
    return [group[0] if len(group) == 1 else _joined(group) for group in joined]


def _follows(group: list[AnyReport], report: Tokens | Text) -> bool:
    first, last = group[0], group[-1]
    match first, last, report:
        case _, Tokens(), Tokens():
            return report.first == last.first + len(last.ids)
        case Text(), _, Text():
            return report.channel == first.channel and (_is_blank(report) or not _is_blank(first))
    return False


def _is_blank(text: Text) -> bool:
    return not text.text or text.text.isspace()


def _joined(group: list[AnyReport]) -> AnyReport:
    texts = [part for part in group if isinstance(part, Text)]
    if texts:
        return msgspec.structs.replace(texts[0], text="".join(part.text for part in texts))
    rows = [part for part in group if isinstance(part, Tokens)]
    return msgspec.structs.replace(
        rows[0],
        at_ns=rows[-1].at_ns,
        reasoning=sum(part.reasoning for part in rows),
        shared=any(part.shared for part in rows),
        **{name: tuple(value for part in rows for value in getattr(part, name)) for name in TOKEN_COLUMNS},
    )
