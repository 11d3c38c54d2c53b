"""What the machine does: one probe a file, and the sampler that runs them.

The folder is the registry: a file with a function `detect(scene) -> Probe | None` is a probe, found by `discover`.
"""

from __future__ import annotations

import importlib
import logging
import pkgutil

from probes.reading import Probe, Reading, Scene

__all__ = ["Probe", "Reading", "Scene", "discover"]

_log = logging.getLogger("homeai.probes")


def discover(scene: Scene) -> list[Probe]:
    """Return the probes of this machine, by the order of their files' names.

    A file that cannot be imported or detected here is logged and left out: it may not cost the others.
    """
    found: list[Probe] = []
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
        try:
            detect = getattr(importlib.import_module(f"{__name__}.{module.name}"), "detect", None)
            probe = detect(scene) if detect is not None else None
        except Exception:  # noqa: BLE001 - a foreign sensor library may fail in any way while it is imported
            _log.exception("the probe %s is left out", module.name)
            continue
        if probe is not None:
            found.append(probe)
    return found
