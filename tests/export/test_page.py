"""The page in a real browser: nothing runs, nothing leaves, and what is there can be seen."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from homeai.export import export
from tests.export.browser import Page, browser, found
from tests.export.sessions import HOSTILE, conversation, kept

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(found() is None, reason="there is no Chromium here, or none that can be driven"),
]

SAID = [
    ("Why is the sky blue?", "Because **short waves** are scattered more.\n\n```python\nprint('blue')\n```\n"),
    (HOSTILE, HOSTILE),
    ("And at dusk?", "Then it is red.\n\n| a | b |\n|:-:|--:|\n| 1 | 2 |\n\n> so\n\n1. one\n2. two\n"),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("page")
    facts = conversation(SAID, title=f"The sky {HOSTILE}", reasoning=HOSTILE, system="Be short.")
    file = folder / "page.html"
    file.write_bytes(b"".join(export(kept(folder, facts), "html")))
    with browser(folder / "profile") as opened:
        opened.looks(1280, 900)
        opened.open(file)
        yield opened


def test_nothing_leaves(page: Page) -> None:
    page.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    requested = {told["request"]["url"] for told in page.told("Network.requestWillBeSent")}
    assert requested == {page.value("location.href")}
    assert page.value("performance.getEntriesByType('resource').length") == 0


def test_nothing_runs_and_nothing_is_complained_about(page: Page) -> None:
    complaints = page.told("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Audits.issueAdded")
    assert complaints == []
    assert page.told("Page.javascriptDialogOpening") == []
    assert page.value("document.scripts.length") == 0
    assert page.value("[...document.querySelectorAll('*')].filter(e => e.onload || e.onerror || e.onclick).length") == 0
    assert page.value("document.querySelectorAll('img, iframe, object, embed, link, form, base').length") == 0


def test_the_policy_forbids_what_would_run(page: Page) -> None:
    """A script or style that somebody slips in later does nothing either."""
    page.value(
        "(() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
        " document.body.append(s);"
        " const d = document.createElement('p'); d.setAttribute('style', 'color: rgb(1, 2, 3)');"
        " d.id = 'd'; document.body.append(d); })()"
    )
    assert page.value("window.ran") is None
    assert page.value("getComputedStyle(document.getElementById('d')).color") != "rgb(1, 2, 3)"
    page.value("document.querySelectorAll('script, #d').forEach(e => e.remove())")


def test_the_charts_can_be_seen(page: Page) -> None:
    def seen(selector: str) -> list[list[float]]:
        boxes = f"[...document.querySelectorAll('{selector}')].map(e => e.getBoundingClientRect())"
        sizes: list[list[float]] = page.value(f"{boxes}.map(box => [box.width, box.height])")
        return sizes

    assert len(seen("svg.waits")) == 1
    assert len(seen("svg.gaps")) == len(SAID)
    for width, height in (*seen("svg.waits"), *seen("svg.gaps path"), *seen("svg.waits rect.prefill")):
        assert width > 15
        assert height > 30
    bars = seen("svg.stretch rect")
    assert len(bars) >= 4 * len(SAID)
    assert all(width >= 0.3 and height >= 8 for width, height in bars)
    fills = page.value("[...new Set([...document.querySelectorAll('svg rect')].map(e => getComputedStyle(e).fill))]")
    assert len(fills) == 3


@pytest.mark.parametrize("width", [360, 800, 1280, 1920])
def test_nothing_is_wider_than_the_window(page: Page, width: int) -> None:
    page.looks(width, 900)
    assert page.value("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_can_be_read_on_its_ground(page: Page, dark: bool) -> None:
    """At least 4.5 to 1, as WCAG asks of small text."""
    page.looks(1280, 900, dark=dark)
    worst = page.value(
        """(() => {
          const light = c => { const [r, g, b] = c.match(/[\\d.]+/g).map(Number).map(v => v / 255)
            .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
          const ground = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
            if (!c.endsWith(', 0)')) return c; } return 'rgb(255, 255, 255)'; };
          let worst = [99, ''];
          for (const e of document.querySelectorAll('body *')) {
            if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
            if (e.closest('svg')) continue;
            const [a, b] = [light(getComputedStyle(e).color), light(ground(e))].sort((x, y) => y - x);
            const ratio = (a + 0.05) / (b + 0.05);
            if (ratio < worst[0]) worst = [ratio, e.tagName + '.' + e.className];
          }
          return worst; })()"""
    )
    assert worst[0] >= 4.5, worst


def test_dark_and_light_are_two(page: Page) -> None:
    grounds = []
    for dark in (False, True):
        page.looks(1280, 900, dark=dark)
        grounds.append(page.value("getComputedStyle(document.body).backgroundColor"))
    assert grounds == ["rgb(250, 249, 246)", "rgb(20, 23, 28)"]


def test_it_prints_on_white_with_all_there_is(page: Page) -> None:
    page.looks(760, 1000, dark=True, printed=True)
    assert page.value("getComputedStyle(document.body).color") == "rgb(35, 40, 47)"
    assert page.value("[...document.querySelectorAll('details > *')].every(e => e.checkVisibility())")


def test_pictures_of_it_can_be_kept(page: Page, tmp_path: Path) -> None:
    """With HOMEAI_PICTURES=FOLDER they are, to be looked at."""
    folder = Path(os.environ.get("HOMEAI_PICTURES", tmp_path))
    for name, width, dark, printed in (
        ("light", 1280, False, False),
        ("dark", 1280, True, False),
        ("narrow", 390, False, False),
        ("printed", 760, False, True),
    ):
        page.looks(width, 900, dark=dark, printed=printed)
        page.screenshot(folder / f"{name}.png")
        assert (folder / f"{name}.png").stat().st_size > 20_000
