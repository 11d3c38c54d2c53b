"""Why a worker ended, in sentences that help: from its exit status and the last lines it printed."""

from __future__ import annotations

import re
import sys

from homeai.events import Fault
from homeai.platform import signal_name
from homeai.units import percent

EXIT_REFUSED = 69
"""The worker could not go on and has said why in a `Refused` (sysexits: service unavailable)."""

EXIT_FAILED = 70
"""An exception came out of the backend; its traceback is the last thing on stderr (sysexits: internal error)."""

_OUT_OF_MEMORY = re.compile(
    r"out of memory|out of (host|device) memory|OutOf(Device|Host)?Memory|failed to allocate|unable to allocate|"
    r"cudaMalloc failed|bad_alloc|insufficient memory|MemoryError",
    re.IGNORECASE,
)
_GPU = re.compile(r"CUDA|\bHIP\b|ROCm|VRAM|Vulkan|vk::|Metal|\bMTL|SYCL|\bGPU\b", re.IGNORECASE)
_GPU_ERROR = re.compile(r"(CUDA|ROCm|HIP|SYCL) error|vk::\w+Error|ErrorDeviceLost", re.IGNORECASE)
_ASSERTION = re.compile(r"GGML_ASSERT|GGML_ABORT|assertion|terminate called|what\(\):", re.IGNORECASE)
_MISSING_LIBRARY = re.compile(
    r"cannot open shared object file|error while loading shared libraries|image not found|Library not loaded|"
    r"DLL load failed|Could not find module|Failed to load shared library",
    re.IGNORECASE,
)
_TRACEBACK_OF_A_SIGNAL = re.compile(
    r"Fatal Python error|Windows fatal|Stack \(|Current thread|Extension modules|  File "
)

_SMALLER = "Choose a smaller model or quantisation, or a shorter context (--context)."
_FEWER_LAYERS = "Put fewer layers on the GPU (--gpu-layers), shorten the context (--context), or use --cpu."
_PORTABLE = (
    "The build of llama.cpp expects another processor. Install the portable one: "
    'CMAKE_ARGS="-DGGML_NATIVE=OFF" pip install --force-reinstall --no-cache-dir llama-cpp-python==0.3.36'
)
_REINSTALL = "Install llama-cpp-python again, built for this machine's drivers; the README has the line for each."
SHORT_OF_MEMORY = 0.1
"""Below this share of free memory the system may have begun to end programs; readings are a second apart."""
_LOG = "The engine's log has the details."

_WINDOWS = {
    0xC000001D: 4,
    0xC0000096: 4,
    0xC0000005: 11,
    0xC00000FD: 11,
    0xC0000374: 11,
    0xC0000409: 6,
}
"""Windows exception codes and the signal that says the same elsewhere."""

_WINDOWS_MISSING_LIBRARY = {0xC0000135, 0xC0000139, 0xC000007B}


def explain(status: int, stderr_tail: str, free_share: float | None = None) -> Fault:
    """Return what to tell about a worker that ended without being asked.

    Args:
        status: `Popen.returncode`: the exit code, a signal's number negated, or a Windows exception code.
        stderr_tail: The last lines it printed.
        free_share: How much of the memory was free when it was last read, 0..1; None where that is not known.
    """
    if status & 0xFFFFFFFF in _WINDOWS_MISSING_LIBRARY or (status > 0 and _MISSING_LIBRARY.search(stderr_tail)):
        return Fault(
            code="engine_import",
            message=f"The engine could not start: a shared library is missing{_quoted(stderr_tail, _MISSING_LIBRARY)}.",
            help=_REINSTALL,
        )
    number = -status if status < 0 else _WINDOWS.get(status)
    message, help = (
        _of_exit(status, stderr_tail) if number is None else _of_signal(number, status, stderr_tail, free_share)
    )
    return Fault(code="engine_died", message=message, help=help)


def explain_import(problem: BaseException, backend: str) -> Fault:
    """Return what to tell about a backend that could not be imported or set up."""
    reason = f"{type(problem).__name__}: {problem}"
    if isinstance(problem, ModuleNotFoundError) and problem.name and not problem.name.startswith("homeai"):
        message = f"The engine could not start: the Python package {problem.name} is not installed ({sys.executable})."
        help = "Install it into that environment; the README has the line for each kind of machine."
    elif isinstance(problem, OSError) or _MISSING_LIBRARY.search(str(problem)):
        message, help = f"The engine could not start: a shared library did not load ({reason}).", _REINSTALL
    elif isinstance(problem, AttributeError):
        message = f"The engine could not start: llama-cpp-python and its library do not match ({reason})."
        help = _REINSTALL
    else:
        message, help = f"The engine could not start: {backend} failed to import ({reason}).", _LOG
    return Fault(code="engine_import", message=message, help=help)


def _of_signal(number: int, status: int, tail: str, free_share: float | None) -> tuple[str, str]:
    """Return sentence and help for a death by this signal, or by its Windows counterpart."""
    name = f"signal {number}, {signal_name(number)}" if status < 0 else f"Windows error 0x{status & 0xFFFFFFFF:08X}"
    match number:
        case 4:
            return f"The engine used a processor instruction that this machine cannot run ({name}).", _PORTABLE
        case 6 if _OUT_OF_MEMORY.search(tail) and _GPU.search(tail):
            return f"The engine gave up because the GPU's memory is full ({name}).", _FEWER_LAYERS
        case 6 if _OUT_OF_MEMORY.search(tail):
            return f"The engine gave up because memory ran out ({name}).", _SMALLER
        case 6 if _GPU_ERROR.search(tail):
            return f"The engine gave up on an error of the GPU{_quoted(tail, _GPU_ERROR)} ({name}).", _FEWER_LAYERS
        case 6:
            return f"The engine gave up on a check of its own{_quoted(tail, _ASSERTION)} ({name}).", _LOG
        case _ if signal_name(number) == "SIGBUS":
            return (
                f"The engine lost the model file's memory ({name}): the file was changed or its disk went away.",
                "Check that the file is complete and its disk is connected, then ask again.",
            )
        case 11:
            return (
                f"The engine crashed: it touched memory that is not its own ({name}).",
                "Try again; when it repeats, try --cpu, another model, or the portable build of llama-cpp-python.",
            )
        case 9:
            return _killed(name, free_share)
        case 2 | 15:
            return f"The engine was ended by another program ({name}).", "Ask again to start it anew."
    return f"The engine died ({name}).", _LOG


def _killed(name: str, free_share: float | None) -> tuple[str, str]:
    again = "The next question starts it again."
    if free_share is not None and free_share >= SHORT_OF_MEMORY:
        return f"The engine was killed from outside ({name}); memory was not short: {percent(free_share)} free.", again
    again += f" If that happens again: {_SMALLER[0].lower()}{_SMALLER[1:]}"
    if free_share is None:
        return f"The engine was killed from outside, perhaps by the system because memory ran out ({name}).", again
    return (
        f"The engine was killed, most likely by the system because memory ran out ({name}): {percent(free_share)} of "
        "it was free.",
        again,
    )


def _of_exit(code: int, tail: str) -> tuple[str, str]:
    if code == 0:
        return "The engine ended by itself without being asked to.", _LOG
    if code == EXIT_FAILED:
        return f"The engine failed: {_last_line(tail) or 'no reason given'}.", _LOG
    if _OUT_OF_MEMORY.search(tail):
        return f"The engine ended because memory ran out (exit code {code}).", _SMALLER
    said = _last_line(tail)
    return f"The engine ended with exit code {code}" + (f": {said}." if said else "."), _LOG


def _quoted(tail: str, wanted: re.Pattern[str]) -> str:
    """The last line that matches, as `: the line`; empty when none does."""
    for line in reversed(tail.splitlines()):
        if wanted.search(line):
            return f": {line.strip().rstrip('.')}"
    return ""


def _last_line(tail: str) -> str:
    for line in reversed(tail.splitlines()):
        if line.strip() and not _TRACEBACK_OF_A_SIGNAL.match(line):
            return line.strip().rstrip(".")
    return ""
