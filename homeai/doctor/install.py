"""Puts another build of the engine's package in, and takes it back when it does not work."""

from __future__ import annotations

import csv
import os
import queue
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import IO

import psutil

from homeai.doctor.builds import Build
from homeai.doctor.checks import ENGINE_PACKAGE
from homeai.doctor.selftest import SelfTest
from homeai.doctor.selftest import run as self_test
from homeai.errors import HomeaiError

_STEP = re.compile(r"\[ *(\d+)/(\d+)\]|\[ *(\d+)%\]")
"""How ninja and make tell how far they are."""
_COMPILED = re.compile(r" -c (\S+)")
"""In a compiler's command, the file that it compiles."""
_TICK_S = 1.0
"""How often the progress is told where nothing new came: some steps take half a minute."""

Progress = Callable[[str, float | None], None]
"""Is told at least once a second what goes on, and how far the compilation is, 0..1, where that is told."""


@dataclass(slots=True)
class _Kept:
    """A copy of what is installed now, to go back to."""

    home: Path
    """The folder that the package lies in."""
    copy: Path
    names: tuple[str, ...] = field(default=())
    """Its folders."""
    files: tuple[Path, ...] = field(default=())
    """What of it lies beside them."""

    def restore(self) -> None:
        for file in _beside(self.home):
            (self.home / file).unlink()
        for path in _installed(self.home):
            shutil.rmtree(path)
        for name in self.names:
            shutil.copytree(self.copy / name, self.home / name)
        for file in self.files:
            (self.home / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self.copy / file, self.home / file)


def install(
    build: Build,
    words: Sequence[str],
    *,
    log_file: Path,
    progress: Progress = lambda _line, _share: None,
    verify: Callable[[], SelfTest] = self_test,
) -> SelfTest:
    """Run the command, try the engine, and return how that went.

    Args:
        build: What is to be compiled.
        words: The command, without its environment.
        log_file: Where all that it prints goes.
        progress: Is told each line as it comes.
        verify: Tries the engine.

    Raises:
        HomeaiError: It did not work; what was installed before is back. So it is after Ctrl-C, which goes through.
    """
    home = _home()
    with tempfile.TemporaryDirectory(prefix="homeai-setup-", ignore_cleanup_errors=True) as folder:
        kept = _keep(home, Path(folder))
        try:
            status = _run(build, words, log_file, progress)
            if status != 0:
                raise HomeaiError(
                    f"The build failed with exit code {status}: {_reason(log_file)}.",
                    code="setup_failed",
                    help=f"All that it printed is in {log_file}.",
                )
            if not any(path.name == "llama_cpp" for path in _installed(home)):
                raise HomeaiError(f"The new build does not work: it left nothing in {home}.", code="setup_failed")
            progress("trying the engine ...", None)
            test = verify()
            if problem := _problem(build, test):
                raise HomeaiError(problem, code="setup_failed", help=f"All that the build printed is in {log_file}.")
        except BaseException as problem:  # also Ctrl+C: what was installed before has to come back
            kept.restore()
            if isinstance(problem, HomeaiError):
                back = "What was installed before is back." if kept.names else "Nothing is installed, as before."
                raise HomeaiError(f"{problem.message} {back}", code=problem.code, help=problem.help) from problem
            raise
    return test


def _problem(build: Build, test: SelfTest) -> str:
    if test.fault is not None and not (build.gpu and test.fault.code == "engine_slow" and test.ready is not None):
        return f"The new build does not work: {test.fault.message}"
    if build.gpu and test.ready is not None and not test.ready.gpu_offload:
        return "The new build cannot use a GPU, although it was built for one."
    return ""


def _home() -> Path:
    """Where the package is installed, or would be."""
    spec = find_spec("llama_cpp")
    if spec is not None and spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations))).parent
    import sysconfig

    return Path(sysconfig.get_path("platlib"))


def _installed(home: Path) -> list[Path]:
    distribution = re.compile(rf"{ENGINE_PACKAGE.replace('-', '[-_]')}-[^-]+\.dist-info", re.IGNORECASE)
    names = [entry for entry in home.iterdir() if entry.is_dir()] if home.is_dir() else []
    return [path for path in names if path.name == "llama_cpp" or distribution.fullmatch(path.name)]


def _beside(home: Path) -> tuple[Path, ...]:
    """Files of the package outside its folders, as its own list names them: headers, libraries a second time."""
    folders = _installed(home)
    names, found = {folder.name for folder in folders}, []
    for folder in folders:
        record = folder / "RECORD"
        rows = csv.reader(record.read_text(encoding="utf-8").splitlines()) if record.is_file() else ()
        for path in (Path(row[0]) for row in rows if row and row[0]):
            inside = not path.is_absolute() and ".." not in path.parts and path.parts[0] not in names
            if inside and (home / path).is_file():
                found.append(path)
    return tuple(found)


def _keep(home: Path, folder: Path) -> _Kept:
    found, beside = _installed(home), _beside(home)
    try:
        for path in found:
            shutil.copytree(path, folder / path.name)
        for file in beside:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(home / file, folder / file)
    except OSError as problem:
        raise HomeaiError(
            f"There is no room to keep the build that is installed now: {problem.strerror}.",
            code="setup_failed",
            help="Free some space in the folder for temporary files, or set TMPDIR to another.",
        ) from problem
    return _Kept(home, folder, tuple(path.name for path in found), beside)


def _run(build: Build, words: Sequence[str], log_file: Path, progress: Progress) -> int:
    log_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    environment = {**os.environ, "CMAKE_ARGS": build.cmake, "FORCE_CMAKE": "1"}
    with log_file.open("w", encoding="utf-8", errors="replace") as log:
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env=environment,
            )
        except OSError as problem:
            raise HomeaiError(f"{words[0]} could not be started: {problem.strerror}.", code="setup_failed") from problem
        with process:
            try:
                _follow(process.stdout, log, progress)
            except BaseException:  # also Ctrl+C: the build must not go on alone
                _end(process)
                raise
        return process.returncode


def _end(process: subprocess.Popen[str]) -> None:
    """End it and all that it started: the compilers would go on for minutes."""
    with suppress(psutil.Error):
        for child in psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.Error):
                child.kill()
    process.kill()


def _follow(output: IO[str] | None, log: IO[str], progress: Progress) -> None:
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(output, lines), name="setup-output", daemon=True).start()
    said, share, most = "", None, 0
    while True:
        try:
            line = lines.get(timeout=_TICK_S)
        except queue.Empty:
            progress(said, share)
            continue
        if line is None:
            return
        log.write(line)
        log.flush()
        said = _bare(line)
        if step := _STEP.search(line):
            done, total, percent = step.groups()
            if percent:
                share = int(percent) / 100
            elif int(total) >= most:  # a build within the build counts its own few steps
                most = int(total)
                share = int(done) / max(1, most)
            if file := _COMPILED.search(line):
                said = f"compiling {Path(file[1]).name}"
        progress(said, share)


def _bare(line: str) -> str:
    """Without what uv puts before the lines of a build."""
    return line.strip().removeprefix("DEBUG").strip()


def _read(output: IO[str] | None, lines: queue.SimpleQueue[str | None]) -> None:
    with suppress(OSError, ValueError):  # it was ended, and its pipe is closed
        for line in output or ():
            lines.put(line)
    lines.put(None)


def _reason(log_file: Path) -> str:
    """The line that says most: the last with the word error in it, else the last; what CMake says below its own."""
    lines = [_bare(line) for line in log_file.read_text(encoding="utf-8", errors="replace").splitlines()]
    told = [at for at, line in enumerate(lines) if line]
    telling = [at for at in told if re.search(r"\berror\b", lines[at], re.IGNORECASE)]
    # The installer's own last words only say that something failed, or tell of what it did otherwise then.
    others = re.compile(r"(ERROR: Failed|error: (subprocess|Failed)|.*note: This error|Failed to reflink)")
    chosen = [at for at in telling if not others.match(lines[at])] or telling or told
    if not chosen:
        return "it printed nothing"
    said = lines[chosen[-1]]
    if re.fullmatch(r"CMake Error at \S+ \(\w+\):", said):
        said = f"CMake: {_paragraph(lines[chosen[-1] + 1 :])}"
    return said[:200].rstrip(".")


def _paragraph(lines: Sequence[str]) -> str:
    """The first sentence, as one line; where it names something below a colon, with that."""
    found: list[str] = []
    goes_on = False
    for line in lines:
        if line.startswith("Call Stack") or (found and not line and not goes_on):
            break
        found += [line] if line else []
        goes_on = (goes_on or line.endswith(":")) and ".  " not in line and not line.endswith(".")
    return " ".join(found).partition(".  ")[0]


def installed_version() -> str | None:
    """The version of the engine's package that is installed now."""
    try:
        return metadata.version(ENGINE_PACKAGE)
    except metadata.PackageNotFoundError:
        return None
