"""The llama.cpp library as llama-cpp-python binds it, without the rest of that package.

`import llama_cpp` also imports its high-level classes with numpy and a template engine: 340 ms here against 50 ms for
the bindings alone. So the package object is registered without running its `__init__`, and only the binding modules
load.
Nothing here is imported outside the worker process.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from homeai.events import Device
from homeai.places import backends_dir

if "llama_cpp" not in sys.modules:
    _spec = importlib.util.find_spec("llama_cpp")
    if _spec is None:
        raise ImportError("llama-cpp-python is not installed")
    sys.modules["llama_cpp"] = importlib.util.module_from_spec(_spec)

import llama_cpp._ctypes_extensions as _loader
import llama_cpp._ggml as _ggml
import llama_cpp.llama_cpp

api: Any = llama_cpp.llama_cpp
"""The C functions and structures, untyped."""

BUILD = version("llama-cpp-python")

LogSink = Callable[[int, str], None]
"""Called with ggml's level (1 debug, 2 info, 3 warning, 4 error, 5 goes on with the last line) and the text."""

_NO_GPU = (b"CPU", b"BLAS", b"RPC", b"zDNN")
"""Backends that are none of a GPU's."""

_DEVICE_TYPES = ("cpu", "gpu", "igpu", "accel")

_log_callback: Any = None


def check_layout() -> None:
    """Raise `ImportError` unless the library's default structures read as this version's bindings expect.

    The structures change with every release; a mismatch would otherwise show as a crash or as nonsense. The fields
    checked lie at the ends of each structure, so that any shift moves them.
    """
    model, context = api.llama_model_default_params(), api.llama_context_default_params()
    sound = (
        model.n_gpu_layers == -1
        and model.use_extra_bufts is True
        and context.n_ctx == 512
        and context.n_ubatch == 512
        and context.no_perf is True
        and context.kv_unified is False
        and context.n_samplers == 0
    )
    if not sound:
        raise ImportError(f"the llama.cpp library does not match the bindings of llama-cpp-python {BUILD}")


def start(log: LogSink) -> None:
    """Initialise the backends, with everything the library says going to `log`."""
    global _log_callback

    @api.llama_log_callback  # type: ignore[untyped-decorator]
    def forward(level: int, text: bytes, _: object) -> None:
        log(level, text.decode("utf-8", "replace"))

    # The library keeps only the address: a collected callback would be called all the same.
    _log_callback = forward
    api.llama_log_set(forward, ctypes.c_void_p(0))
    load_backends(backends_dir(BUILD))
    api.llama_backend_init()


def load_backends(folder: Path) -> None:
    """Load the libraries in a folder that add kinds of GPU, `libggml-vulkan.so` and its like; no folder, none.

    What does not fit or lacks a driver is left out; why, the library logs.
    """
    load = _typed(_ggml.libggml.ggml_backend_load, ctypes.c_void_p, ctypes.c_char_p)
    with suppress(OSError):
        for file in sorted(folder.iterdir()):
            if "ggml-" in file.name and file.suffix in (".so", ".dll", ".dylib"):
                load(os.fsencode(file))


def system_info() -> str:
    """The instruction sets and features this build uses, in llama.cpp's own words."""
    return str(api.llama_print_system_info().decode("utf-8", "replace")).strip()


def can_use_gpu() -> bool:
    """Whether this build has a backend for GPUs; `llama_supports_gpu_offload` only says if one is visible now."""
    base = _loader.load_shared_library("ggml-base", _ggml.libggml_base_path)
    count = _typed(_ggml.libggml.ggml_backend_reg_count, ctypes.c_size_t)
    get = _typed(_ggml.libggml.ggml_backend_reg_get, ctypes.c_void_p, ctypes.c_size_t)
    name = _typed(base.ggml_backend_reg_name, ctypes.c_char_p, ctypes.c_void_p)
    return any(name(get(index)) not in _NO_GPU for index in range(count()))


def devices() -> tuple[Device, ...]:
    """The devices this build can see, with their memory where they tell it."""
    base = _loader.load_shared_library("ggml-base", _ggml.libggml_base_path)
    count = _typed(_ggml.libggml.ggml_backend_dev_count, ctypes.c_size_t)
    get = _typed(_ggml.libggml.ggml_backend_dev_get, ctypes.c_void_p, ctypes.c_size_t)
    name = _typed(base.ggml_backend_dev_name, ctypes.c_char_p, ctypes.c_void_p)
    description = _typed(base.ggml_backend_dev_description, ctypes.c_char_p, ctypes.c_void_p)
    kind = _typed(base.ggml_backend_dev_type, ctypes.c_int, ctypes.c_void_p)
    describe = _typed(base.ggml_backend_dev_get_props, None, ctypes.c_void_p, ctypes.POINTER(_Properties))
    size = ctypes.POINTER(ctypes.c_size_t)
    memory = _typed(base.ggml_backend_dev_memory, None, ctypes.c_void_p, size, size)
    found = []
    for index in range(count()):
        device = get(index)
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        memory(device, ctypes.byref(free), ctypes.byref(total))
        number = kind(device)
        properties = _Properties()
        describe(device, ctypes.byref(properties))
        found.append(
            Device(
                name=name(device).decode("utf-8", "replace"),
                description=description(device).decode("utf-8", "replace"),
                id=(properties.device_id or b"").decode("utf-8", "replace"),
                type=_DEVICE_TYPES[number] if 0 <= number < len(_DEVICE_TYPES) else "other",  # type: ignore[arg-type]
                free_bytes=free.value if total.value else None,
                total_bytes=total.value or None,
            )
        )
    return tuple(found)


class _Properties(ctypes.Structure):
    """`ggml_backend_dev_props`, with room for capabilities that a later version may add."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("description", ctypes.c_char_p),
        ("memory_free", ctypes.c_size_t),
        ("memory_total", ctypes.c_size_t),
        ("type", ctypes.c_int),
        ("device_id", ctypes.c_char_p),
        ("capabilities", ctypes.c_bool * 64),
    )


def _typed(function: Any, returns: Any, *takes: Any) -> Any:
    function.restype, function.argtypes = returns, list(takes)
    return function
