"""Which packages Python finds, and which are meant."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from homeai.doctor import shadows
from homeai.doctor.shadows import shadowed


def test_the_packages_of_this_environment_are_the_ones_that_are_meant() -> None:
    assert shadowed().status == "ok"


def test_another_package_in_the_place_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stranger = tmp_path / "probes" / "__init__.py"
    monkeypatch.setattr(shadows, "find_spec", lambda _name: SimpleNamespace(origin=str(stranger)))
    check = shadowed(("probes",))
    assert check.status == "fail"
    assert check.fix == f"mv {stranger.parent} {stranger.parent}-other"
    monkeypatch.setattr(shadows, "find_spec", lambda _name: None)
    assert "is missing" in shadowed(("probes",)).message


@pytest.mark.parametrize("package", [False, True])
def test_a_file_in_the_place_of_what_homeai_is_built_on(
    package: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stranger = tmp_path / "psutil" / "__init__.py" if package else tmp_path / "psutil.py"
    stranger.parent.mkdir(exist_ok=True)
    stranger.write_text("")
    monkeypatch.setattr(
        shadows, "find_spec", lambda name: SimpleNamespace(origin=str(stranger)) if name == "psutil" else None
    )
    shown = stranger.parent if package else stranger
    check = shadowed(())
    assert check.message == f"{shown} hides the package psutil that homeai is built on."
    assert check.fix == f"mv {shown} {shown}-other"
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert shadowed(()).fix == "unset PYTHONPATH"
