"""One function a part of the set-up: looks, and says what it found and what mends it.

What they look at comes in as arguments, so that each can be tried with every fault that it knows.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from homeai.doctor.packages import to_type
from homeai.doctor.report import Check, Status
from homeai.doctor.selftest import SelfTest
from homeai.events import Device, Fault
from homeai.metrics.placement import Gpu
from homeai.models.fit import Room
from homeai.places import at_home, home_dir
from homeai.platform import is_terminal_dumb
from homeai.units import count, percent, printable, size, span

ENGINE_PACKAGE = "llama-cpp-python"
ENGINE_VERSION = "0.3.36"
"""The version whose structures the engine's bindings were written for; no other one works."""

LOW_DISK_BYTES, NO_DISK_BYTES = 2 << 30, 100 << 20
"""A model of home size is larger than the first; below the second not even a session can be recorded."""
LOW_MEMORY_BYTES = 1 << 30

_VARIABLE = re.compile(r"HOMEAI_[A-Z_]+")
_MISSING = re.compile(r"(?:No module named '?|Python package )([\w-]+)")
_ENGINE_NEEDS = ("msgspec", "psutil", "platformdirs", "jinja2", "markupsafe", "typing_extensions")
"""Python packages that the worker imports."""
_OPENMP = re.compile(r"libgomp\.so\.1: cannot open")
_OPENMP_FROM = {
    "apt-get": "sudo apt-get install libgomp1",
    "dnf": "sudo dnf install libgomp",
    "zypper": "sudo zypper install libgomp1",
}
"""The one library of the system that llama.cpp needs on Linux and that small installations lack, by its installer."""
_GPU_TYPES = ("gpu", "igpu")


def packages(versions: Mapping[str, str | None]) -> Iterator[Check]:
    """Whether what homeai is built on is there, in the version that it needs."""
    engine = versions.get(ENGINE_PACKAGE)
    missing = [name for name, version in versions.items() if version is None and name != ENGINE_PACKAGE]
    if engine is None:
        yield Check("packages", "fail", f"The engine's package, {ENGINE_PACKAGE}, is not installed.", "homeai setup")
    elif engine != ENGINE_VERSION:
        message = f"{ENGINE_PACKAGE} is {engine}; homeai needs {ENGINE_VERSION} exactly."
        yield Check("packages", "fail", message, "homeai setup")
    if missing:
        yield Check("packages", "fail", f"Not installed: {', '.join(missing)}.", to_type("install", *missing))
    if engine == ENGINE_VERSION and not missing:
        yield Check("packages", "ok", f"The packages are complete; {ENGINE_PACKAGE} {engine}.")


def settings() -> Check:
    """Whether the settings file can be read and makes sense."""
    from homeai.errors import UsageError
    from homeai.places import config_file
    from homeai.settings import load

    problems: list[UsageError] = []
    found = load({}, problems)
    if problems:
        first = problems[0].message
        set_in_shell = next((name for name in _VARIABLE.findall(first) if os.environ.get(name)), None)
        fix = f"${{EDITOR:-nano}} {_quoted(config_file())}" if set_in_shell is None else _unset(set_in_shell)
        others = "" if len(problems) == 1 else f" It is one of {len(problems)} mistakes: homeai config lists them all."
        sentence = f"{first}{'' if not others or first.endswith(('.', '?')) else '.'}"
        return Check("settings", "fail", f"The settings do not hold: {sentence}{others}", fix)
    if found.warnings:
        set_in_shell = _VARIABLE.search(" ".join(found.warnings))
        fix = "homeai config" if set_in_shell is None else _unset(set_in_shell[0])
        return Check("settings", "warn", " ".join(found.warnings), fix)
    where = at_home(config_file())
    return Check("settings", "ok", f"Settings: {where}" + ("" if config_file().exists() else " (not there: defaults)"))


def engine(test: SelfTest) -> Iterator[Check]:
    """Whether the engine starts and computes."""
    fault = test.fault
    if test.ready is None:
        message = fault.message if fault is not None else "The engine did not start."
        yield Check("engine", "fail", _with_last_words(message, test.stderr_tail), _engine_fix(fault))
        return
    yield Check("engine", "ok", f"The engine starts: {test.ready.backend} {test.ready.build}.")
    if fault is None:
        words = f"The engine read and wrote in its test: {test.tokens} tokens, in {span(test.took_ns)} altogether."
        yield Check("self_test", "ok", words)
    elif fault.code == "engine_slow":
        message = f"{fault.message} A GPU may still be compiling its programs, once."
        yield Check("self_test", "warn", message, "homeai doctor")
    else:
        yield Check("self_test", "fail", _with_last_words(fault.message, test.stderr_tail), _engine_fix(fault))


def gpu(test: SelfTest, known: tuple[Gpu, ...], problems: Mapping[str, str], visible: str | None) -> Check:
    """Whether there is a GPU, whether the engine sees it, and whether it used it.

    Args:
        test: What the engine did.
        known: The GPUs that the probes see.
        problems: By probe, why it tells nothing.
        visible: CUDA_VISIBLE_DEVICES; None where it is not set.
    """
    names = ", ".join(gpu.title for gpu in known)
    if problems and not known:
        reason = next(iter(problems.values()))
        return Check("gpu", "warn", f"A GPU's driver does not answer: {reason}.", _driver_fix(reason))
    ready = test.ready
    if ready is None:
        return Check("gpu", "warn" if known else "ok", f"GPU: {names or 'none seen'}; the engine could not be asked.")
    seen = [device for device in ready.devices if device.type in _GPU_TYPES]
    if not seen and not known:
        return Check("gpu", "ok", "No GPU was found; the processor does the work.")
    if not ready.gpu_offload:
        return Check("gpu", "warn", f"{names} is there, but this build of llama.cpp cannot use a GPU.", "homeai setup")
    if not seen:
        hides = visible is not None and not visible.strip(" ,")
        fix = "unset CUDA_VISIBLE_DEVICES" if visible is not None else "homeai setup"
        why = "; CUDA_VISIBLE_DEVICES hides it" if hides else ""
        return Check("gpu", "warn", f"{names} is there, but llama.cpp does not see it{why}.", fix)
    used = test.loaded.engine.layers_offloaded if test.loaded is not None else None
    title = ", ".join(device.description or device.name for device in seen)
    if test.fault is None and not used:
        return Check("gpu", "fail", f"llama.cpp sees {title} but computed nothing on it.", "homeai setup")
    if used:
        return Check("gpu", "ok", f"The GPU is used: {title}.")
    return Check("gpu", "warn", f"llama.cpp sees {title}; whether it can use it was not found out.", "homeai doctor")


def memory(total: float | None, available: float | None, limited: bool) -> Check:
    """Whether there is room for a model."""
    if total is None or available is None:
        return Check("memory", "warn", "The system does not tell how much memory it has.")
    where = "in this container" if limited else "in all"
    message = f"Memory: {size(available)} free of {size(total)} {where} ({percent(available / total)})."
    if available < LOW_MEMORY_BYTES:
        return Check("memory", "warn", message, "Close other programs, or choose a smaller model.")
    return Check("memory", "ok", message)


def model(room: Room | None = None) -> Check | None:
    """Whether there is a model to chat with when none is named, and room for it as it would be run.

    None where the settings do not hold, which say what model that is.
    """
    from msgspec.structs import replace

    from homeai.errors import HomeaiError, UsageError
    from homeai.models.choose import resolve_model
    from homeai.models.fit import STEP, estimate, shortage
    from homeai.models.starter import REQUIREMENT, find_starter
    from homeai.places import state_dir
    from homeai.settings import load

    try:
        found = load({})
    except UsageError:
        return None
    try:
        chosen = resolve_model(
            found.value("model"), folders=tuple(map(Path, found.value("folders"))), state_dir=state_dir()
        )
    except HomeaiError as problem:
        fix = to_type("install", REQUIREMENT, "--no-deps") if find_starter() is None else "homeai models"
        return Check("model", "warn", f"There is no model to begin with: {problem.message}", fix)
    message = f"Model: {chosen.name} ({size(chosen.size_bytes)})"
    if chosen.plan is None or room is None:
        return Check("model", "ok", f"{message}.")
    options = found.for_model(chosen.path, chosen.size_bytes, state_dir()).engine_options(chosen.context_trained)
    options = replace(options, context=options.context or chosen.context_trained or STEP)
    needs = sum(place.held_bytes for place in estimate(chosen.plan, options, gpu=room.gpu_bytes is not None))
    message += f"; with a context of {count(options.context)} tokens it needs {size(needs)} of memory."
    short = shortage(chosen.plan, options, room, most=chosen.context_trained)
    if short is None:
        return Check("model", "ok", message)
    fix = "homeai models" if short.fits is None else f"homeai --context {short.fits.context}"
    if short.fits is not None and short.fits.gpu_layers != options.gpu_layers:
        fix = f"homeai --gpu-layers {short.fits.gpu_layers}"
    return Check("model", "warn", f"{message} {short.message}", fix)


def places(paths: Mapping[str, Path]) -> Iterator[Check]:
    """Whether files can be written where homeai keeps its own, and whether the disk has room."""
    refused: dict[Path, tuple[str, OSError]] = {}
    for name, path in paths.items():
        existing = _nearest_existing(path)
        # A folder, because the settings' place is a file that need not exist.
        folder = existing if existing.is_dir() else existing.parent
        try:
            with tempfile.NamedTemporaryFile(dir=folder, prefix=".homeai-") as file:
                file.write(bytes(4096))  # a full disk still takes the name of a file
        except OSError as problem:
            refused.setdefault(folder, (name, problem))
    for folder, (name, refusal) in refused.items():
        message = f"Nothing can be written in {at_home(folder)}: {refusal.strerror or refusal}."
        yield Check("places", "fail", message, _mend_place(name, folder, refusal))
    if not refused:
        yield Check("places", "ok", "Settings, sessions, caches and logs can be written.")
    data = paths["data"]
    try:
        free = shutil.disk_usage(_nearest_existing(data)).free
    except OSError as problem:
        yield Check("disk", "warn", f"The disk of {at_home(data)} does not tell its free space: {problem.strerror}.")
        return
    message = f"Disk: {size(free)} free where sessions are kept."
    status: Status = "fail" if free < NO_DISK_BYTES else "warn" if free < LOW_DISK_BYTES else "ok"
    fix = "" if status == "ok" else f"df -h {_quoted(_nearest_existing(data))} shows the disk; free some of it."
    yield Check("disk", status, message, fix)


def terminal(environ: Mapping[str, str], encoding: str | None, is_terminal: bool, columns: int, rows: int) -> Check:
    """What the terminal can show."""
    if not is_terminal:
        return Check("terminal", "ok", "No terminal is attached; the dashboard needs one, homeai ask does not.")
    if is_terminal_dumb(environ):
        kind = f"TERM is {environ['TERM']}" if environ.get("TERM") else "TERM is not set"
        return Check("terminal", "warn", f"{kind}: the dashboard cannot run.", "export TERM=xterm-256color")
    colours = "16 million" if environ.get("COLORTERM") in ("truecolor", "24bit") else "256 or fewer"
    if "NO_COLOR" in environ:
        colours = "no (NO_COLOR is set)"
    message = f"Terminal: {environ.get('TERM', 'unnamed')}, {columns} x {rows}, {colours} colours"
    if (encoding or "").lower().replace("-", "") not in ("utf8", "cp65001"):
        fix = "export LANG=C.UTF-8" if os.name == "posix" else "chcp 65001"
        return Check("terminal", "warn", f"{message}; its encoding is {encoding}, which lacks signs.", fix)
    if columns < 60 or rows < 20:
        return Check("terminal", "warn", f"{message}: too small to show the figures.", "Make the window larger.")
    return Check("terminal", "ok", f"{message}, all signs.")


def build_of(test: SelfTest, libraries: tuple[str, ...]) -> dict[str, object]:
    """How llama.cpp was built, by its own words and by the libraries that came with it."""
    flags: dict[str, str] = {}
    if test.ready is not None:
        for part in test.ready.system_info.replace("CPU :", "").split("|"):
            name, equals, value = part.partition("=")
            if equals:
                flags[name.strip().rpartition(": ")[2]] = value.strip()
    return {
        "backends": sorted(libraries),
        "flags": flags,
        "gpu_offload": None if test.ready is None else test.ready.gpu_offload,
    }


def device_of(device: Device, places: Mapping[str, Gpu | None]) -> dict[str, object]:
    """A device that the engine sees, and which GPU of the probes it is."""
    gpu = places.get(device.name)
    return {
        "name": device.name,
        "description": device.description,
        "type": device.type,
        "pci": device.id or None,
        "free_bytes": device.free_bytes,
        "total_bytes": device.total_bytes,
        "is": None if gpu is None else f"{gpu.probe} {gpu.index}",
    }


def _engine_fix(fault: Fault | None) -> str:
    """A missing package or library is installed; an engine that dies or does not load needs another build."""
    if fault is None:
        return "homeai setup"
    missing = _MISSING.search(fault.message)
    if missing and missing[1] != "llama_cpp":
        # A name that is not known here may be anybody's in a registry.
        return to_type("install", missing[1]) if missing[1] in _ENGINE_NEEDS else fault.help or "homeai setup"
    if _OPENMP.search(fault.message) and (installer := next(filter(shutil.which, _OPENMP_FROM), None)):
        return _OPENMP_FROM[installer]
    return "homeai setup" if fault.code in ("engine_import", "engine_died") or not fault.help else fault.help


def _driver_fix(reason: str) -> str:
    if "restarted" in reason or "updated" in reason:
        return "sudo reboot"
    if "not loaded" in reason:
        return "sudo modprobe nvidia"
    if "library is not installed" in reason:
        return "Install the maker's driver, then: nvidia-smi"
    return "nvidia-smi"


def _mend_place(name: str, folder: Path, problem: OSError) -> str:
    if problem.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"df -h {_quoted(folder)} shows the disk; free some of it."
    # Only what is the user's own is to be made so again: the nearest folder that exists may be the system's, and where
    # a user has no home all of the system counts as one.
    own = folder.is_relative_to(home_dir()) and home_dir() != Path(home_dir().anchor)
    if own and problem.errno != errno.EROFS:
        if os.name == "posix":
            return f'sudo chown -R "$USER" {_quoted(folder)} && chmod u+rwx {_quoted(folder)}'
        return f'icacls "{folder}" /grant "%USERNAME%":F'
    variable = f"HOMEAI_{'STATE' if name == 'log' else name.upper()}_DIR"
    if not home_dir().is_dir() and variable not in os.environ:
        variable = "HOME"
    return f"{'export' if os.name == 'posix' else 'set'} {variable}=FOLDER, with one that can be written."


def _unset(variable: str) -> str:
    return f"unset {variable}" if os.name == "posix" else f"set {variable}="


def _with_last_words(message: str, tail: str) -> str:
    lines = [line.strip() for line in printable(tail).splitlines() if line.strip()]
    return f"{message} Its last words: {lines[-1][:200]}" if lines and lines[-1] not in message else message


def _nearest_existing(path: Path) -> Path:
    return next((each for each in (path, *path.parents) if each.exists()), Path(path.anchor or "."))


def _quoted(path: Path) -> str:
    return shlex.quote(str(path)) if os.name == "posix" else f'"{path}"'
