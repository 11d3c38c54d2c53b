"""The everyday targets in the charts of an exported page."""

from __future__ import annotations

import re
from pathlib import Path

from homeai.export import Options, export
from homeai.targets import NO_TARGETS, Targets
from tests.export.sessions import conversation, kept, stories_told


def page(folder: Path, story: str, options: Options) -> str:
    return b"".join(export(kept(folder, stories_told()[story]), "html", options)).decode()


def lines(html: str) -> list[str]:
    return re.findall(r'<line class="target"[^>]*y1="([^"]*)"', html)


def test_a_chart_has_the_lines_that_it_reaches_and_words_for_all(tmp_path: Path) -> None:
    html = page(tmp_path, "whole", Options())
    # The longest gap is 256 ms: 100 ms lie at 39 % of the height, 10 ms at 4 %.
    assert lines(html) == ["96.1", "60.9"]
    assert '<li class="target">most gaps over the 10 ms line (flowing text)</li>' in html
    assert '<li class="target">most gaps under the 100 ms line (comfortable reading)</li>' in html


def test_what_it_does_not_reach_is_said_alone(tmp_path: Path) -> None:
    html = page(tmp_path, "whole", Options(targets=Targets(gap_ms=None, reading_tps=1)))
    assert lines(html) == []
    assert '<li class="bare">all gaps under the 1 s line (comfortable reading)</li>' in html


def test_what_is_turned_off_is_not_there(tmp_path: Path) -> None:
    html = page(tmp_path, "talk", Options(targets=NO_TARGETS))
    assert lines(html) == []
    assert "line (" not in html
    assert "within" not in html.split("<main>")[0]


def test_how_many_first_tokens_came_in_time_is_said_above_all_answers(tmp_path: Path) -> None:
    record = kept(tmp_path, conversation([("Why?", "So.")] * 3))
    html = b"".join(export(record, "html")).decode().split("<main>")[0]
    assert '<li class="target">0 of 3 within 200 ms</li>' in html
    assert len(lines(html)) == 1
    easy = b"".join(export(record, "html", Options(targets=Targets(first_token_ms=60_000)))).decode().split("<main>")[0]
    assert '<li class="bare">3 of 3 within 60 s</li>' in easy
    assert lines(easy) == []
