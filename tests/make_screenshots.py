"""Takes the pictures of the README: real runs of the dashboard with the starter model, as SVG, into assets/.

Run it with `uv run python -m tests.make_screenshots`.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from pathlib import Path

from homeai.app.app import HomeaiApp
from homeai.app.main import open_session
from homeai.events import Sampler
from homeai.metrics.state import SessionState
from homeai.session.sampling import start_sampling
from homeai.settings import load

ASSETS = Path(__file__).parent.parent / "assets"
SIZES = ((80, 24), (120, 36), (200, 50))
FIRST = "What is the capital of France? Answer shortly."
SECOND = "Write three short sentences about a river in spring."


async def photograph(width: int, height: int) -> str:
    """Ask two questions and return the screen after the second answer."""
    settings = load({})
    app = HomeaiApp(
        lambda on_fact: open_session(settings, None, on_fact),
        sampler=Sampler(temperature=0.0, max_tokens=90),
        start_sampling=start_sampling,
    )
    try:
        async with app.run_test(size=(width, height)) as pilot:
            while app.session is None:
                await pilot.pause(0.1)
            for count, question in enumerate((FIRST, SECOND), start=1):
                app.chat_screen.prompt.insert(question)
                await pilot.press("enter")
                while len(ended(app.session.state)) < count:
                    await pilot.pause(0.1)
                # The screen takes in the end of an answer with its next picture.
                await pilot.pause(0.5)
            return app.export_screenshot(title="homeai")
    finally:
        app.close_session()


def ended(state: SessionState) -> list[int]:
    """The answers that are done."""
    return [answer_id for answer_id, answer in state.answers.items() if answer.ended is not None]


def without_the_web(svg: str) -> str:
    """Drop the fonts that the picture would fetch; it names a monospace font to fall back on."""
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


def main() -> None:
    """Write one picture a size."""
    ASSETS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as places:
        import os

        os.environ["HOMEAI_STATE_DIR"] = os.environ["HOMEAI_CONFIG_DIR"] = places
        for width, height in SIZES:
            svg = without_the_web(asyncio.run(photograph(width, height)))
            (ASSETS / f"dashboard-{width}x{height}.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
