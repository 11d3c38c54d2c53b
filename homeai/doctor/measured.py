"""Whether what this machine was measured to do is of use."""

from __future__ import annotations

from pathlib import Path

from homeai.doctor.report import Check


def calibration() -> Check | None:
    """Whether what was measured of this machine with the model to begin with is of use; None where nothing was."""
    from homeai.errors import HomeaiError
    from homeai.metrics.soundness import disturbances
    from homeai.models.choose import resolve_model
    from homeai.places import state_dir
    from homeai.settings import load

    try:
        settings = load({})
        chosen = resolve_model(
            settings.value("model"), folders=tuple(map(Path, settings.value("folders"))), state_dir=state_dir()
        )
    except HomeaiError:
        return None
    found = settings.ceilings(chosen.path, chosen.size_bytes, state_dir())
    if found is None:
        return None
    day = f" on {found.measured_at[:10]}" if found.measured_at else ""
    if reasons := disturbances(found):
        message = f"What this machine was measured to do{day} is not used, as it was busy: {' '.join(reasons)}"
        return Check("calibration", "warn", message, "homeai calibrate")
    return Check("calibration", "ok", f"Answers are compared with what this machine was measured to do{day}.")
