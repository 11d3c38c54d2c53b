"""What the doctor found: checks with their severity and the command that mends each, and the whole as one object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from homeai.errors import ExitCode

Status = Literal["ok", "warn", "fail"]

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. `fix` is the exact command, or what to do where no command does it."""

    id: str
    status: Status
    message: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that was found."""

    checks: tuple[Check, ...] = ()
    versions: dict[str, str | None] = field(default_factory=dict)
    build: dict[str, Any] = field(default_factory=dict)
    devices: tuple[dict[str, Any], ...] = ()
    paths: dict[str, str] = field(default_factory=dict)
    self_test: dict[str, Any] = field(default_factory=dict)

    @property
    def status(self) -> Status:
        """The worst of the checks."""
        return worst(self.checks)

    def written(self) -> dict[str, Any]:
        """The object of `homeai doctor --json`."""
        return {
            "schema": SCHEMA,
            "status": self.status,
            "checks": [asdict(check) for check in self.checks],
            "versions": self.versions,
            "build": self.build,
            "devices": list(self.devices),
            "paths": self.paths,
            "self_test": self.self_test,
        }


def worst(checks: Sequence[Check]) -> Status:
    """The worst status of several."""
    found = {check.status for check in checks}
    return "fail" if "fail" in found else "warn" if "warn" in found else "ok"


def exit_code(status: Status) -> ExitCode:
    """What the process returns for it."""
    return {"ok": ExitCode.OK, "warn": ExitCode.WARNINGS, "fail": ExitCode.FAULTS}[status]
