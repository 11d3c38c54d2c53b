"""Puts another build of the engine's package in, and takes it back when it does not work."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from homeai.doctor.builds import Build
from homeai.doctor.checks import ENGINE_PACKAGE
from homeai.doctor.selftest import SelfTest
from homeai.doctor.selftest import run as self_test
from homeai.errors import HomeaiError

_STEP = re.compile(r"\[ *(\d+)/(\d+)\]|\[ *(\d+)%\]")
"""How ninja and make tell how far they are."""

Progress = Callable[[str, float | None], None]
"""Is told the newest line, and how far the compilation is, 0..1, where it tells."""


@dataclass(slots=True)
class _Kept:
    """A copy of what is installed now, to go back to."""

    home: Path
    """The folder that the package lies in."""
    copy: Path
    names: tuple[str, ...] = field(default=())

    def restore(self) -> None:
        for path in _installed(self.home):
            shutil.rmtree(path)
        for name in self.names:
            shutil.copytree(self.copy / name, self.home / name)


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


def _keep(home: Path, folder: Path) -> _Kept:
    found = _installed(home)
    try:
        for path in found:
            shutil.copytree(path, folder / path.name)
    except OSError as problem:
        raise HomeaiError(
            f"There is no room to keep the build that is installed now: {problem.strerror}.",
            code="setup_failed",
            help="Free some space in the folder for temporary files, or set TMPDIR to another.",
        ) from problem
    return _Kept(home, folder, tuple(path.name for path in found))


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
                process.kill()
                raise
        return process.returncode


def _follow(output: IO[str] | None, log: IO[str], progress: Progress) -> None:
    share: float | None = None
    for line in output or ():
        log.write(line)
        log.flush()
        if step := _STEP.search(line):
            done, total, percent = step.groups()
            share = int(percent) / 100 if percent else int(done) / max(1, int(total))
        progress(line.strip(), share)


def _reason(log_file: Path) -> str:
    """The line that says most: the last with the word error in it, else the last."""
    lines = [line.strip() for line in log_file.read_text(encoding="utf-8", errors="replace").splitlines()]
    lines = [line for line in lines if line]
    telling = [line for line in lines if re.search(r"\berror\b", line, re.IGNORECASE)]
    # pip's own last words only say that something failed.
    own = [line for line in telling if not re.match(r"(ERROR: Failed|error: subprocess|.*note: This error)", line)]
    chosen = own or telling or lines
    return chosen[-1][:200].rstrip(".") if chosen else "it printed nothing"


def installed_version() -> str | None:
    """The version of the engine's package that is installed now."""
    try:
        return metadata.version(ENGINE_PACKAGE)
    except metadata.PackageNotFoundError:
        return None
