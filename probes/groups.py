"""Not a probe: the control groups that this process is in (Linux), whose limits bind it like a smaller machine."""

from __future__ import annotations

from pathlib import Path


def control_groups(proc: Path, mounts: Path, controller: str, files: tuple[str, ...]) -> tuple[Path, ...]:
    """The folders of one controller's groups that hold any of these files: this process's own first, then those above.

    A container may show a group's path that its own mount does not hold; the levels that are missing are left out.
    """
    try:
        lines = (proc / "self" / "cgroup").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ()
    found: list[Path] = []
    for line in lines:
        _, _, membership = line.partition(":")
        controllers, _, group = membership.partition(":")
        if not controllers:
            top = mounts
        elif controller in controllers.split(","):
            top = mounts / controller
        else:
            continue
        level = top / group.strip("/")
        while True:
            if any((level / name).exists() for name in files):
                found.append(level)
            if level == top:
                break
            level = level.parent
    return tuple(found)
