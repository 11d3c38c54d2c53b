"""What the doctor says of a measurement of the machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from homeai.doctor.measured import calibration
from homeai.settings import load, tuned
from tests.explain.scenes import TWO_CORES
from tests.models.tiny import write_chat_model


def test_a_disturbed_measurement_is_not_all_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONFIG", "STATE", "DATA", "CACHE"):
        monkeypatch.setenv(f"HOMEAI_{name}_DIR", str(tmp_path / name))
    monkeypatch.setenv("HOMEAI_MODEL", str(tmp_path / "none.gguf"))
    assert calibration() is None
    model = write_chat_model(tmp_path / "tiny.gguf")
    monkeypatch.setenv("HOMEAI_MODEL", str(model))
    assert calibration() is None
    file, place = tmp_path / "STATE" / tuned.FILE_NAME, load({}).measured_place(model, model.stat().st_size)
    file.parent.mkdir()
    measured = replace(TWO_CORES, measured_at="2026-11-30T12:00:00.000+01:00")
    tuned.write_ceilings(file, place, measured)
    found = calibration()
    assert found is not None
    assert (found.status, found.fix) == ("ok", "")
    tuned.write_ceilings(file, place, replace(measured, engine_share=0.3))
    found = calibration()
    assert found is not None
    assert (found.status, found.fix) == ("warn", "homeai calibrate")
    assert found.message.startswith("What this machine was measured to do on 2026-11-30 is not used, as it was busy: ")
    assert "The engine got 30 % of the processor time" in found.message
