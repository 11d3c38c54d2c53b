"""The whole examination: everything that is looked at, at once where it takes time."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import homeai
from homeai import places
from homeai.doctor import checks, measured, selftest
from homeai.doctor.machine import Look
from homeai.doctor.report import Report
from homeai.doctor.shadows import shadowed
from homeai.events import Device
from homeai.metrics.alarms import GPU_PROBES
from homeai.metrics.placement import gpus, matched
from homeai.metrics.state import ProbeState
from homeai.models.fit import Room

PACKAGES = (
    checks.ENGINE_PACKAGE,
    "textual",
    "psutil",
    "nvidia-ml-py",
    "httpx",
    "platformdirs",
    "msgspec",
    "jinja2",
    "markdown-it-py",
)
"""All that homeai declares to be built on."""


def examine(backend: str = "homeai.engine.llamacpp") -> Report:
    """Look at everything; it takes about a second, and ten at most where the engine hangs."""
    versions = _versions()
    with Look() as look:
        test = selftest.run(backend)
    paths = _paths()
    known = gpus(look.probes)
    ready = test.ready
    devices = ready.devices if ready is not None else ()
    is_which = matched(devices, known, os.environ)
    model, known_speed = checks.model(_room(_memory(look.probes)[1], devices)), measured.calibration()
    found = [
        *checks.packages({name: versions[name] for name in PACKAGES}),
        shadowed(),
        checks.settings(),
        *checks.engine(test),
        checks.gpu(test, known, _silent(look.probes), os.environ.get("CUDA_VISIBLE_DEVICES")),
        checks.memory(*_memory(look.probes)),
        *(each for each in (model, known_speed) if each is not None),
        *checks.places({name: path for name, path in paths.items() if name not in ("python", "homeai")}),
        checks.terminal(os.environ, sys.stdout.encoding, sys.stdout.isatty(), *_terminal_size()),
    ]
    return Report(
        checks=tuple(found),
        versions=versions,
        build=checks.build_of(test, _libraries()),
        devices=tuple(checks.device_of(device, is_which) for device in devices),
        paths={name: str(path) for name, path in paths.items()},
        self_test={
            "tokens": test.tokens,
            "took_ms": test.took_ns / 1e6,
            "error": None if test.fault is None else {"code": test.fault.code, "message": test.fault.message},
        },
    )


def _versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {"homeai": homeai.__version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found | {"system": f"{platform.system()} {platform.release()} {platform.machine()}"}


def _paths() -> dict[str, Path]:
    return {
        "python": Path(sys.executable),
        "homeai": Path(homeai.__file__).parent,
        "config": places.config_file(),
        "data": places.data_dir(),
        "state": places.state_dir(),
        "cache": places.cache_dir(),
        "log": places.log_dir(),
    }


def _libraries() -> tuple[str, ...]:
    """The kinds of device that libraries of llama.cpp are there for: `cpu`, `cuda`, `vulkan`, ..."""
    spec = find_spec("llama_cpp")
    folders = [Path(folder) / "lib" for folder in (spec.submodule_search_locations or ())] if spec else []
    folders.append(places.backends_dir(checks.ENGINE_VERSION))
    names = {file.name for folder in folders if folder.is_dir() for file in folder.iterdir()}
    kinds = {name.partition("ggml-")[2].partition(".")[0] for name in names if "ggml-" in name}
    return tuple(sorted(kinds - {"base", ""}))


def _silent(probes: Mapping[str, ProbeState]) -> dict[str, str]:
    """Probes of GPUs that tell nothing, with the reason."""
    return {
        name: state.last.missing["*"]
        for name, state in probes.items()
        if name in GPU_PROBES and "*" in state.last.missing
    }


def _memory(probes: Mapping[str, ProbeState]) -> tuple[float | None, float | None, bool]:
    state = probes.get("memory")
    values = state.last.values if state is not None else {}
    return values.get("total_bytes"), values.get("available_bytes"), "container_limit_bytes" in values


def _room(available: float | None, devices: Sequence[Device]) -> Room | None:
    """What is free for a model; the engine's test gave back what it took."""
    cards = [device.free_bytes for device in devices if device.type in ("gpu", "igpu")]
    known = [free for free in cards if free is not None]
    if available is None or len(known) < len(cards):
        return None
    return Room(available, float(sum(known)) if known else None)


def _terminal_size() -> tuple[int, int]:
    try:
        size = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        return 0, 0
    return size.columns, size.lines
