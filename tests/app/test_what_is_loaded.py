"""The interface's process stays free of native code, and the first paint free of what can come later."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

ANSWERED = """
import asyncio, os, sys
os.environ["HOMEAI_SCRIPT"] = "rate=500 say=```python\\nx = 1\\n```\\n**done**"
from tests.app.test_real_session import scripted_app
from tests.app.stage import until

async def main():
    app = scripted_app(measured=True)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: app.session is not None)
        app.chat_screen.prompt.text = "go"
        await pilot.press("enter")
        await until(pilot, lambda: app.desk.current.ended)
    app.close_session()

asyncio.run(main())
print(*sorted(sys.modules))
"""


def modules_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=180
    )
    return set(done.stdout.split())


def test_an_answer_on_the_screen_brings_no_native_library_into_this_process() -> None:
    loaded = modules_after(ANSWERED)
    assert "textual" in loaded
    assert not loaded & {"llama_cpp", "numpy", "gguf", "httpx", "jinja2"}


def test_the_first_paint_needs_neither_engine_nor_markdown_nor_probes() -> None:
    loaded = modules_after("import sys, homeai.app.main; print(*sorted(sys.modules))")
    late = {"markdown_it", "pygments", "homeai.session", "homeai.engine.supervisor", "homeai.models.choose", "probes"}
    assert not loaded & late
