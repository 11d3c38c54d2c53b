"""What would be the same at every start is said at the first one only."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from homeai.app.main import open_session
from homeai.events import AnyFact, LoadEnded, LoadFailed, Notice
from homeai.session.told import TOLD_ONCE, told_before, write_down
from homeai.settings import load
from tests.engine.recorder import eventually

GPU = ("cpu_only_build", "no_gpu_visible")


def test_a_notice_is_taken_down_and_others_are_not(tmp_path: Path) -> None:
    state = tmp_path / "state"
    write_down(state, "template_bypassed")
    assert not state.exists()
    write_down(state, TOLD_ONCE[0])
    write_down(state, TOLD_ONCE[0])
    assert told_before(state) == {TOLD_ONCE[0]}


def test_a_place_that_cannot_be_written_only_means_being_told_again(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("in the way")
    write_down(tmp_path / "state", TOLD_ONCE[0])
    assert told_before(tmp_path / "state") == set()


@pytest.mark.model
def test_the_dashboard_tells_once_that_no_gpu_is_used_unless_one_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOMEAI_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    told = [_told_at_a_start(tmp_path / "state", {}) for _ in range(2)]
    if not told[0]:
        pytest.skip("the engine was built for a GPU that it can use")
    assert [len(codes) for codes in told] == [1, 0]
    assert _told_at_a_start(tmp_path / "state", {"gpu_layers": "3"})


def _told_at_a_start(state: Path, flags: dict[str, str]) -> list[str]:
    """The codes among what a start tells, until the model is there and the notice was taken down."""
    facts: list[AnyFact] = []
    loaded = threading.Event()

    def hear(fact: AnyFact) -> None:
        facts.append(fact)
        if isinstance(fact, (LoadEnded, LoadFailed)):
            loaded.set()

    session = open_session(load({"context": "512", **flags}), None, hear)
    try:
        assert loaded.wait(180)
        eventually(lambda: any(isinstance(fact, Notice) for fact in facts), within_s=1)
    finally:
        session.close()
    codes = [fact.code for fact in facts if isinstance(fact, Notice) and fact.code in GPU]
    assert eventually(lambda: set(codes) <= told_before(state))
    return codes
