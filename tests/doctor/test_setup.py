"""`homeai setup`: the choice, and the whole way through with a stand-in for pip over a copy of the real engine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

from homeai.doctor import install as installing
from homeai.doctor.builds import BUILDS, Hardware, choose, command, cpu_flags, shown
from homeai.doctor.checks import ENGINE_PACKAGE, ENGINE_VERSION
from homeai.doctor.install import install
from homeai.errors import HomeaiError
from tests.engine.recorder import eventually

ROOT = Path(__file__).resolve().parents[2]


def tools(*names: str) -> object:
    return lambda name: f"/usr/bin/{name}" if name in names else None


AVX2 = frozenset({"avx", "avx2"})


@pytest.mark.parametrize(
    ("gpus", "flags", "there", "expected", "noted"),
    [
        (("nvidia",), AVX2, ("nvcc", "glslc"), "cuda", ""),
        (("nvidia",), AVX2, ("glslc",), "vulkan", "CUDA toolkit"),
        (("nvidia",), AVX2 | {"hypervisor"}, (), "cpu", "install the CUDA toolkit"),
        (("amd",), AVX2, ("hipcc",), "rocm", ""),
        (("amd",), AVX2, ("glslc",), "vulkan", "ROCm toolkit"),
        (("apple",), frozenset(), (), "metal", ""),
        ((), AVX2, ("nvcc", "glslc", "hipcc"), "cpu-native", ""),
        ((), AVX2 | {"amx_tile"}, (), "cpu", ""),
        ((), AVX2 | {"hypervisor"}, (), "cpu", ""),
        ((), frozenset({"sse4_2"}), (), "cpu-old", ""),
        ((), frozenset(), (), "cpu", ""),
    ],
)
def test_the_build_that_suits(
    gpus: tuple[str, ...], flags: frozenset[str], there: tuple[str, ...], expected: str, noted: str
) -> None:
    choice = choose(Hardware(gpus, flags), tools(*there))  # type: ignore[arg-type]
    assert choice.build.id == expected
    assert noted in choice.note
    assert bool(noted) == bool(choice.note)


def test_processor_features_come_from_linux(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor : 0\nflags\t\t: fpu avx2 amx_tile\n")
    assert cpu_flags(tmp_path / "cpuinfo") == {"fpu", "avx2", "amx_tile"}
    assert cpu_flags(tmp_path / "nothing") == frozenset()


def test_the_command_is_whole_and_exact() -> None:
    words = command("/py")
    assert words is not None
    assert words[-1] == f"{ENGINE_PACKAGE}=={ENGINE_VERSION}"
    if os.name == "posix":
        assert shown(BUILDS["cuda"], words).startswith("CMAKE_ARGS='-DGGML_CUDA=ON -DGGML_NATIVE=OFF' ")


# --- the whole way through --------------------------------------------------------------------------------------------

PIP = """
import os, sys, pathlib
print("building", os.environ["CMAKE_ARGS"])
for done in (1, 50, 100):
    print(f"  [{done}/100] Building CXX object")
exec(os.environ["STAND_IN"])
"""


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """A folder that comes before the real environment, with a copy of the engine's package and a stand-in for pip."""
    spec = find_spec("llama_cpp")
    assert spec is not None
    assert spec.origin is not None
    site = tmp_path / "site"
    shutil.copytree(
        Path(spec.origin).parent, site / "llama_cpp", ignore=shutil.ignore_patterns("__pycache__", "server")
    )
    own = metadata.distribution(ENGINE_PACKAGE)
    info = next(Path(str(own.locate_file(file))).parent for file in own.files or () if file.name == "METADATA")
    shutil.copytree(info, site / info.name)
    (site / "pip").mkdir()
    (site / "pip" / "__init__.py").write_text("")
    (site / "pip" / "__main__.py").write_text(PIP)
    return site


def setup(site: Path, *arguments: str, does: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
    own = {f"HOMEAI_{name}_DIR": str(site.parent / name.lower()) for name in ("CONFIG", "STATE", "DATA", "CACHE")}
    return subprocess.run(
        [sys.executable, "-m", "homeai", "setup", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=site.parent,
        stdin=subprocess.DEVNULL,
        env={
            **os.environ,
            **own,
            "PYTHONPATH": f"{site}{os.pathsep}{ROOT}",
            "SITE": str(site),
            "STAND_IN": does,
            **environ,
        },
    )


def engine(site: Path) -> dict[str, int]:
    """The files of the copy with their sizes."""
    return {
        str(path.relative_to(site)): path.stat().st_size
        for path in sorted(site.glob("llama_cpp*/**/*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


BREAK = "p = pathlib.Path(os.environ['SITE'], 'llama_cpp', 'lib'); [f.write_bytes(b'no library') for f in p.iterdir()]"
LOSE = "import shutil; shutil.rmtree(pathlib.Path(os.environ['SITE'], 'llama_cpp'))"


def test_a_build_that_works_stays(scratch: Path) -> None:
    mark = "pathlib.Path(os.environ['SITE'], 'llama_cpp', 'new').write_text('x')"
    done = setup(scratch, "--build", "cpu", "--yes", does=mark)
    assert done.returncode == 0, done.stderr
    assert "CMAKE_ARGS=-DGGML_NATIVE=OFF" in done.stdout
    assert "The new build works on CPU." in done.stdout
    assert (scratch / "llama_cpp" / "new").exists()
    log = (scratch.parent / "state" / "log" / "setup.log").read_text()
    assert "building -DGGML_NATIVE=OFF" in log


@pytest.mark.parametrize("does", [BREAK, LOSE])
def test_a_build_that_does_not_work_is_taken_back(scratch: Path, does: str) -> None:
    before = engine(scratch)
    done = setup(scratch, "--build", "cpu", "--yes", does=does)
    assert done.returncode == 1
    assert "The new build does not work" in done.stderr
    assert "What was installed before is back." in done.stderr
    assert engine(scratch) == before
    assert setup(scratch, "--build", "cpu", "--yes").returncode == 0, "what is back works"


def test_what_the_package_keeps_outside_its_folder_comes_back_too(scratch: Path) -> None:
    library = scratch / "lib" / "libllama.so"
    library.parent.mkdir()
    library.write_text("old")
    (record,) = scratch.glob("llama_cpp*.dist-info/RECORD")
    assert "lib/libllama.so," in record.read_text()
    other = "other.txt"
    (scratch / other).write_text("of somebody else")
    does = (
        f"{BREAK}; s = pathlib.Path(os.environ['SITE']); (s / 'lib/libllama.so').unlink(); "
        "(s / 'lib/libggml-new.so').write_text('new'); r = next(s.glob('llama_cpp*.dist-info/RECORD')); "
        "r.write_text(r.read_text() + 'lib/libggml-new.so,,\\n../../outside,,\\n')"
    )
    done = setup(scratch, "--build", "cpu", "--yes", does=does)
    assert "What was installed before is back." in done.stderr
    assert library.read_text() == "old"
    assert not (scratch / "lib" / "libggml-new.so").exists()
    assert (scratch / other).read_text() == "of somebody else"


def test_a_build_that_fails_is_told_with_its_reason_and_taken_back(scratch: Path) -> None:
    before = engine(scratch)
    does = f"{LOSE}; print('CMake Error: no nvcc found'); sys.exit(1)"
    done = setup(scratch, "--build", "cpu", "--yes", does=does)
    assert done.returncode == 1
    assert "exit code 1: CMake Error: no nvcc found" in done.stderr
    assert "setup.log" in done.stderr
    assert engine(scratch) == before


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        (
            "DEBUG Failed to reflink `a`: Operation not supported (os error 95), falling back\n"
            "DEBUG CMake Error at /usr/share/cmake/CMakeDetermineHIPCompiler.cmake:103 (message):\n"
            "DEBUG   Failed to find ROCm root directory.\n"
            "DEBUG Call Stack (most recent call first):\n"
            "DEBUG -- Configuring incomplete, errors occurred!\n"
            "error: Failed to build `llama-cpp-python==0.3.36`\n",
            "CMake: Failed to find ROCm root directory",
        ),
        (
            "  CMake Error at CMakeLists.txt:1 (find_package):\n\n    Could not find Vulkan\n    (missing: glslc)\n\n",
            "CMake: Could not find Vulkan (missing: glslc)",
        ),
        (
            "DEBUG CMake Error at ggml-cuda/CMakeLists.txt:178 (target_link_libraries):\n"
            'DEBUG   Target "ggml-cuda" links to:\nDEBUG \nDEBUG     CUDA::cublas\nDEBUG \n'
            "DEBUG   but the target was not found.  Possible reasons include:\nDEBUG \nDEBUG     * A typo.\n",
            'CMake: Target "ggml-cuda" links to: CUDA::cublas but the target was not found',
        ),
        (
            "x.cpp:1:2: error: no such thing\nninja: build stopped: subcommand failed.\n",
            "x.cpp:1:2: error: no such thing",
        ),
        ("ERROR: Failed building wheel for llama-cpp-python\n", "ERROR: Failed building wheel for llama-cpp-python"),
        ("only words\n", "only words"),
        ("", "it printed nothing"),
    ],
)
def test_the_reason_of_a_failure_is_what_the_build_said_itself(tmp_path: Path, printed: str, reason: str) -> None:
    (tmp_path / "x.log").write_text(printed)
    assert installing._reason(tmp_path / "x.log") == reason


def test_a_gpu_build_that_cannot_use_one_is_taken_back(scratch: Path) -> None:
    before = engine(scratch)
    (scratch.parent / "bin").mkdir()
    (scratch.parent / "bin" / "glslc").write_text("#!/bin/sh\n")
    (scratch.parent / "bin" / "glslc").chmod(0o755)
    path = f"{scratch.parent / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = setup(scratch, "--build", "vulkan", "--yes", does="", PATH=path)
    assert "The new build cannot use a GPU" in done.stderr
    assert engine(scratch) == before


def followed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str) -> list[tuple[str, float | None]]:
    """What is told while a command runs that installs nothing."""
    told: list[tuple[str, float | None]] = []
    monkeypatch.setattr(installing, "_home", lambda: tmp_path)
    with pytest.raises(HomeaiError):
        install(
            BUILDS["cpu"],
            [sys.executable, "-u", "-c", code],
            log_file=tmp_path / "log" / "x.log",
            progress=lambda line, share: told.append((line, share)),
        )
    return told


def test_the_steps_of_a_build_within_the_build_are_not_the_builds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lines = [
        "DEBUG [0/2] /usr/bin/cmake -P VerifyGlobs.cmake",
        "DEBUG [10/500] /usr/bin/g++ -DGGML_AVX2 -o CMakeFiles/ops.cpp.o -c /tmp/src/ggml-cpu/ops.cpp",
        "DEBUG [2/2] Linking CXX executable vulkan-shaders-gen",
        "DEBUG [500/500] Linking CXX shared library libllama.so",
    ]
    told = followed(monkeypatch, tmp_path, f"print({chr(10).join(lines)!r})")
    assert told == [
        ("[0/2] /usr/bin/cmake -P VerifyGlobs.cmake", 0.0),
        ("compiling ops.cpp", 0.02),
        ("[2/2] Linking CXX executable vulkan-shaders-gen", 0.02),
        ("[500/500] Linking CXX shared library libllama.so", 1.0),
    ]


def test_a_step_that_takes_long_is_told_again_and_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(installing, "_TICK_S", 0.05)
    told = followed(monkeypatch, tmp_path, "import time; print('[1/4] x'); time.sleep(2)")
    assert len(told) > 3
    assert set(told) == {("[1/4] x", 0.25)}


def test_what_a_build_started_does_not_outlive_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(installing, "_home", lambda: tmp_path)
    inner = "import time; time.sleep(60)"
    code = (
        f"import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', {inner!r}]); print(p.pid, flush=True); "
        "p.wait()"
    )
    started: list[int] = []

    def interrupt(line: str, _share: float | None) -> None:
        started.append(int(line))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        install(BUILDS["cpu"], [sys.executable, "-c", code], log_file=tmp_path / "log" / "x.log", progress=interrupt)
    assert eventually(lambda: not is_running(started[0]))


def is_running(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_ctrl_c_in_the_middle_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "llama_cpp").mkdir()
    (tmp_path / "llama_cpp" / "old").write_text("x")
    monkeypatch.setattr(installing, "_home", lambda: tmp_path)
    package = str(tmp_path / "llama_cpp")
    code = f"import shutil, time; shutil.rmtree({package!r}); print('[1/2]', flush=True); time.sleep(60)"

    def interrupt(_line: str, share: float | None) -> None:
        assert share == 0.5
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        install(BUILDS["cpu"], [sys.executable, "-c", code], log_file=tmp_path / "log" / "x.log", progress=interrupt)
    assert (tmp_path / "llama_cpp" / "old").read_text() == "x"


def test_nothing_is_run_without_consent(scratch: Path) -> None:
    fatal = "pathlib.Path(os.environ['SITE'], 'ran').write_text('x')"
    for arguments in (["--build", "cpu", "--dry-run"], ["--build", "cpu"]):
        done = setup(scratch, *arguments, does=fatal)
        assert "pip install" in done.stdout
        assert not (scratch / "ran").exists()
    assert done.returncode == 2
    assert "say --yes" in done.stderr


def test_what_suits_already_is_left_alone(scratch: Path) -> None:
    done = setup(scratch)
    assert done.returncode == 0
    assert "there is nothing to do" in done.stdout


def test_an_unknown_build_is_refused(scratch: Path) -> None:
    done = setup(scratch, "--build", "warp")
    assert done.returncode == 2
    assert "cuda, rocm, metal, vulkan" in done.stderr


def test_without_the_tool_nothing_is_tried(scratch: Path) -> None:
    empty = scratch.parent / "empty"
    empty.mkdir()
    done = setup(scratch, "--build", "cuda", "--yes", PATH=str(empty))
    assert done.returncode == 1
    assert "nvcc is not installed" in done.stderr
