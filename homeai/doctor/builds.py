"""The builds of llama.cpp, and which one suits a machine."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from homeai.doctor import packages
from homeai.doctor.checks import ENGINE_PACKAGE, ENGINE_VERSION

BuildId = Literal["cuda", "rocm", "metal", "vulkan", "cpu", "cpu-native", "cpu-old"]


@dataclass(frozen=True, slots=True)
class Build:
    """One way to compile llama.cpp."""

    id: BuildId
    title: str
    cmake: str
    tool: str = ""
    """The program that has to be there to compile it, beside a C++ compiler."""
    tool_from: str = ""
    """Where that comes from, for people."""

    @property
    def gpu(self) -> bool:
        """Whether it can use a GPU."""
        return not self.id.startswith("cpu")


BUILDS: dict[BuildId, Build] = {
    build.id: build
    for build in (
        Build("cuda", "NVIDIA GPUs (CUDA)", "-DGGML_CUDA=ON -DGGML_NATIVE=OFF", "nvcc", "the CUDA toolkit"),
        Build("rocm", "AMD GPUs (ROCm)", "-DGGML_HIP=ON -DGGML_NATIVE=OFF", "hipcc", "the ROCm toolkit"),
        Build("metal", "Apple's GPUs (Metal)", "-DGGML_METAL=ON"),
        Build(
            "vulkan",
            "any GPU (Vulkan)",
            "-DGGML_VULKAN=ON -DGGML_NATIVE=OFF",
            "glslc",
            "the Vulkan SDK (Debian: glslc libvulkan-dev spirv-headers)",
        ),
        Build("cpu", "the processor, portable (AVX2)", "-DGGML_NATIVE=OFF"),
        Build("cpu-native", "this very processor", "-DGGML_NATIVE=ON"),
        Build(
            "cpu-old",
            "processors without AVX2",
            "-DGGML_NATIVE=OFF -DGGML_AVX=OFF -DGGML_AVX2=OFF -DGGML_FMA=OFF -DGGML_F16C=OFF -DGGML_BMI2=OFF",
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Hardware:
    """What the choice depends on."""

    gpus: tuple[str, ...] = ()
    """Of the GPUs found, which probe tells of each: `nvidia`, `amd`, `apple`."""
    cpu_flags: frozenset[str] = frozenset()
    """As Linux lists them; empty where they are not known."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A build and why it is the one."""

    build: Build
    reason: str
    note: str = ""
    """What is in the way of a better one."""


def cpu_flags(cpuinfo: Path = Path("/proc/cpuinfo")) -> frozenset[str]:
    """The processor's features (Linux); empty where they are not told."""
    try:
        for line in cpuinfo.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("flags"):
                return frozenset(line.partition(":")[2].split())
    except OSError:
        pass
    return frozenset()


def choose(hardware: Hardware, which: Callable[[str], str | None] = shutil.which) -> Choice:
    """Return the best build that can be compiled here."""
    if "apple" in hardware.gpus:
        return Choice(BUILDS["metal"], "this Mac's chip has a GPU")
    makers: tuple[tuple[str, str, BuildId], ...] = (("nvidia", "an NVIDIA GPU", "cuda"), ("amd", "an AMD GPU", "rocm"))
    notes = []
    for probe, words, best in makers:
        if probe not in hardware.gpus:
            continue
        if which(BUILDS[best].tool):
            return Choice(BUILDS[best], f"this machine has {words}")
        if which(BUILDS["vulkan"].tool):
            tools = BUILDS[best].tool_from
            return Choice(
                BUILDS["vulkan"], f"this machine has {words}", f"With {tools} a faster build would be possible."
            )
        notes.append(
            f"This machine has {words}. To use it, install {BUILDS[best].tool_from}, or {BUILDS['vulkan'].tool_from}, "
            "and run homeai setup again."
        )
    note = " ".join(notes)
    flags = hardware.cpu_flags
    if flags and "avx2" not in flags and "asimd" not in flags:
        return Choice(BUILDS["cpu-old"], "this processor has no AVX2", note)
    if not flags or "hypervisor" in flags or "amx_tile" in flags:
        # A virtual machine may report instructions (AMX) that it cannot run: the native build dies of them.
        return Choice(BUILDS["cpu"], "it runs on every processor with AVX2", note)
    return Choice(BUILDS["cpu-native"], "it uses all that this processor can do", note)


def command(python: str = sys.executable) -> list[str] | None:
    """The command that compiles and installs the engine's package; None where no installer is there."""
    wanted = ("--no-deps", "--no-binary", ENGINE_PACKAGE, f"{ENGINE_PACKAGE}=={ENGINE_VERSION}")
    own: tuple[str, ...] = ("--force-reinstall", "--no-cache-dir")
    if find_spec("pip") is None:
        own = ("--reinstall-package", ENGINE_PACKAGE, "--no-cache")
    return packages.command("install", "-v", *own, *wanted, python=python)


def shown(build: Build, words: Sequence[str]) -> str:
    """The whole command as one would type it."""
    if os.name == "posix":
        return f"CMAKE_ARGS={shlex.quote(build.cmake)} {packages.typed(words)}"
    return f'set "CMAKE_ARGS={build.cmake}" && {packages.typed(words)}'
