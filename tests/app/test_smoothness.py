"""What could stop the screen for a moment."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

from homeai.app import main
from homeai.settings import load


def test_the_search_for_garbage_leaves_out_what_was_there_before_the_first_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened, begins = object(), list[Callable[..., Any]]()

    class App:
        crash = refusal = None

        def __init__(self, begin: Callable[..., Any], **_more: Any) -> None:
            begins.append(begin)

        def close_session(self) -> None: ...

    async def run_app(_app: App) -> int:
        assert begins[0](lambda _fact: None) is opened
        return 0

    monkeypatch.setattr(main, "HomeaiApp", App)
    monkeypatch.setattr(main, "run_app", run_app)
    monkeypatch.setattr(main, "open_session", lambda *_given: opened)
    assert gc.get_freeze_count() == 0
    try:
        assert main.run_dashboard(load({}), None) == 0
        assert gc.get_freeze_count() > 10_000
        assert len(gc.get_objects()) < gc.get_freeze_count() / 10
    finally:
        gc.unfreeze()
