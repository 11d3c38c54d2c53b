"""The page as text: what it may hold at all. What a browser makes of it is tried in `test_page.py`."""

from __future__ import annotations

import re
import tempfile
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from homeai.events import AnyFact, LoadEnded
from homeai.explain import explain
from homeai.export import export
from homeai.export.prose import prose
from tests.export.sessions import HOSTILE, conversation, kept, stories_told
from tests.metrics.stories import MODEL

_TAGS = """
    html head meta title style body header main footer section article aside figure figcaption details summary div span
    p a h1 h2 h3 h4 h5 h6 ul ol li dl dt dd table caption thead tbody tr th td time small strong em s br hr blockquote
    pre code svg g rect path line
"""
TAGS = set(_TAGS.split())
VOID = {"meta", "br", "hr", "rect", "path", "line"}
_ATTRIBUTES = """
    lang charset http-equiv content name class id dir href scope role aria-label aria-hidden viewbox
    preserveaspectratio width height x y x1 x2 y1 y2 d rx start
"""
ATTRIBUTES = set(_ATTRIBUTES.split())


class Checked(HTMLParser):
    """Refuses whatever is not on the lists, and tags that do not close."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.count: dict[str, int] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # Within the chart a title is what the pointer shows.
        assert tag in TAGS, tag
        self.count[tag] = self.count.get(tag, 0) + 1
        for name, value in attrs:
            assert name in ATTRIBUTES, name
            assert name != "href" or re.fullmatch(r"#answer-\d+", value or ""), value
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def checked(html: str) -> Checked:
    parser = Checked()
    parser.feed(html)
    parser.close()
    assert parser.open == []
    return parser


def page(folder: Path, story: str) -> str:
    return b"".join(export(kept(folder, stories_told()[story]), "html")).decode()


@pytest.mark.parametrize("story", stories_told())
def test_a_page_holds_nothing_that_loads_or_runs(tmp_path: Path, story: str) -> None:
    html = page(tmp_path, story)
    checked(html)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    style = re.search(r"<style>(.*)</style>", html, re.DOTALL)
    assert policy
    assert style
    digest = b64encode(sha256(style[1].encode()).digest()).decode()
    assert policy[1] == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert not re.search(r"url\(|@import|expression", style[1])


PIECES = ["<script>", "</p>", "![", "](", ")", "[", "<http://x>", "`", "*", "|", "\n", "\n|-|\n", "> ", "&lt;", "1. "]
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=14).map("".join)


@settings(max_examples=200, deadline=None)
@given(TEXTS)
def test_any_answer_is_harmless(text: str) -> None:
    checked(prose(text))


@settings(max_examples=15, deadline=None)
@given(TEXTS, TEXTS)
def test_any_question_and_title_are_harmless(text: str, title: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        facts = conversation([(text, text)], title=title, reasoning=text, system=text, model=title or "x")
        checked(b"".join(export(kept(Path(folder), facts), "html")).decode())


def test_markdown_is_drawn(tmp_path: Path) -> None:
    html = prose("# One\n\n**two** `three`\n\n- four\n\n|a|b|\n|-|-:|\n|1|2|\n\n```py\nx < 1\n```")
    for piece in (
        "<h1>One</h1>",
        "<strong>two</strong> <code>three</code>",
        "<li>four</li>",
        '<td class="right">2</td>',
        "<pre><small>py</small><code>x &lt; 1\n</code></pre>",
    ):
        assert piece in html


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("[words](http://a.b/c)", '<p>words <span class="address">(http://a.b/c)</span></p>\n'),
        ("<http://a.b/c>", "<p>http://a.b/c</p>\n"),
        ("![cat](http://a.b/c.png)", '<p>cat <span class="address">(http://a.b/c.png)</span></p>\n'),
        ("[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>\n"),
        ("<b onclick=x>", "<p>&lt;b onclick=x&gt;</p>\n"),
    ],
)
def test_links_say_where_they_would_lead(markdown: str, shown: str) -> None:
    assert prose(markdown) == shown


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from([*PIECES, "]: ", "```", "~~~", "\n\n", "    ", " ", ' "', "# "]), max_size=14))
def test_no_word_is_lost(pieces: list[str]) -> None:
    text = "".join(f"{piece}word{number}x" for number, piece in enumerate(pieces))
    shown = "".join(checked(prose(text)).words)
    assert [f"word{number}x" for number in range(len(pieces)) if f"word{number}x" not in shown] == []


@pytest.mark.parametrize("depth", [3, 40, 60, 3000])
def test_the_depth_of_a_nest_loses_no_word(depth: int) -> None:
    for text in ("> " * depth + "word", "\n".join(f"{'  ' * level}- a" for level in range(min(depth, 400))) + "word"):
        assert "word" in "".join(checked(prose(text)).words)


def test_a_deep_nest_takes_no_time() -> None:
    checked(prose("[" * 20_000 + "x" + "](y)" * 2_000 + "\n" + "> " * 2_000 + "y"))


def test_the_figures_are_those_of_the_dashboard(tmp_path: Path) -> None:
    html = page(tmp_path, "talk")
    words = " ".join(checked(html).words)
    for shown in (
        "2.31 s",
        "261 tok/s",
        "14.8 tok/s",
        "already loaded",
        "604 tok at 261 tok/s",
        "1,804 tok, 1,200 reused",
    ):
        assert shown in words, shown
    assert "median 66.0 ms · worst" in words
    assert words.count("Where the time went") == 2
    assert MODEL.name in words


def test_an_alarm_is_seen_before_the_sums_are_opened(tmp_path: Path) -> None:
    facts: list[AnyFact] = [
        replace(fact, engine=replace(fact.engine, threads=8, cores=2)) if isinstance(fact, LoadEnded) else fact
        for fact in stories_told()["whole"]
    ]
    threaded = kept(tmp_path, facts)
    assert explain(threaded.state, 1).alarms
    summary = re.search(r"<summary>Why, with the sums(.*?)</summary>", b"".join(export(threaded, "html")).decode())
    assert summary
    assert "something is wrong" in summary[1]
    assert "something is wrong" not in page(tmp_path, "whole")


def test_each_answer_has_its_charts(tmp_path: Path) -> None:
    html = page(tmp_path, "talk")
    assert html.count('<svg class="waits"') == 1
    assert html.count('<svg class="gaps"') == 2
    assert html.count('<svg class="stretch"') >= 8
    assert page(tmp_path, "whole").count('<svg class="waits"') == 0


def test_the_hostile_text_is_all_there_as_text(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    html = b"".join(export(kept(tmp_path, conversation([(HOSTILE, "")])), "html")).decode()
    words = "".join(checked(html).words)
    assert "<script>alert(1)</script> <img src=x onerror=alert(1)> ![a](http://127.0.0.1:9/x.png)" in words
    assert "␛[2J ␛]0;X␇" in words
