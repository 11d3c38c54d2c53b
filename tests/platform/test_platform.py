"""What the operating system tells: cores that can really be used, control groups, terminals, signal names."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeai import platform
from homeai.platform.cores import fewest

if sys.platform == "win32":
    from homeai.platform import _windows as twin
else:
    from homeai.platform import _posix as twin

posix = pytest.mark.skipif(sys.platform == "win32", reason="control groups and terminals of POSIX systems")


@given(physical=st.integers(1, 256), restricted=st.booleans(), quota=st.none() | st.floats(0.01, 512))
def test_usable_cores_exceed_no_limit_and_are_at_least_one(
    physical: int, restricted: bool, quota: float | None
) -> None:
    cores = fewest(physical, restricted=restricted, quota=quota)
    assert 1 <= cores.usable <= physical
    assert quota is None or cores.usable <= max(1, quota)
    assert quota is None or cores.usable == physical or cores.usable == max(1, int(quota))
    assert cores.reason


def test_the_reason_names_the_limit_that_binds() -> None:
    assert fewest(8, restricted=False, quota=None).reason == "8 physical cores"
    assert fewest(1, restricted=False, quota=8).reason == "1 physical core"
    assert fewest(2, restricted=True, quota=None).reason == "2 physical cores allowed to this process"
    limited = fewest(8, restricted=True, quota=2.5)
    assert limited == platform.Cores(2, "CPU limit of 2.5 in this container or session")


@pytest.mark.skipif(sys.platform != "linux", reason="binding a process to CPUs is Linux only")
def test_fewer_allowed_cpus_are_fewer_usable_cores() -> None:
    if sys.platform == "linux":
        before = os.sched_getaffinity(0)
        try:
            os.sched_setaffinity(0, {min(before)})
            assert platform.usable_cores().usable == 1
        finally:
            os.sched_setaffinity(0, before)


@posix
def test_two_threads_of_a_core_are_one_core(tmp_path: Path) -> None:
    for cpu, siblings in {0: "0,4", 1: "1,5", 4: "0,4", 5: "1,5"}.items():
        place = tmp_path / f"cpu{cpu}" / "topology"
        place.mkdir(parents=True)
        (place / "thread_siblings_list").write_text(siblings + "\n")
    assert twin.physical_cores(frozenset({0, 1, 4, 5}), tmp_path) == 2
    assert twin.physical_cores(frozenset({0, 4}), tmp_path) == 1


@posix
def test_physical_cores_agree_with_a_second_source() -> None:
    import psutil

    assert twin.physical_cores(twin.allowed_cpus(), Path("nowhere")) == min(
        psutil.cpu_count(logical=False) or 1, len(twin.allowed_cpus() or range(999))
    )
    assert platform.usable_cores().usable <= (psutil.cpu_count() or 1)


class Groups:
    """A made-up /proc and /sys/fs/cgroup."""

    def __init__(self, root: Path) -> None:
        self.proc, self.mounts = root / "proc", root / "cgroup"
        (self.proc / "self").mkdir(parents=True)
        self.mounts.mkdir()

    def member(self, *lines: str) -> None:
        (self.proc / "self" / "cgroup").write_text("".join(line + "\n" for line in lines))

    def file(self, name: str, content: str) -> None:
        path = self.mounts / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    def quota(self) -> float | None:
        return twin.cpu_quota(self.proc, self.mounts)


@pytest.fixture
def groups(tmp_path: Path) -> Groups:
    return Groups(tmp_path)


@posix
class TestControlGroups:
    def test_version_2(self, groups: Groups) -> None:
        groups.member("0::/user.slice/app.scope")
        groups.file("user.slice/app.scope/cpu.max", "150000 100000\n")
        assert groups.quota() == 1.5

    def test_a_group_above_limits_too(self, groups: Groups) -> None:
        groups.member("0::/user.slice/app.scope")
        groups.file("user.slice/app.scope/cpu.max", "max 100000\n")
        groups.file("user.slice/cpu.max", "300000 100000\n")
        assert groups.quota() == 3

    def test_no_limit(self, groups: Groups) -> None:
        groups.member("0::/")
        groups.file("cpu.max", "max 100000\n")
        assert groups.quota() is None

    def test_version_1(self, groups: Groups) -> None:
        groups.member("4:cpu,cpuacct:/docker/1f", "3:memory:/docker/1f", "0::/")
        groups.file("cpu,cpuacct/docker/1f/cpu.cfs_quota_us", "200000\n")
        groups.file("cpu,cpuacct/docker/1f/cpu.cfs_period_us", "100000\n")
        assert groups.quota() == 2

    def test_version_1_seen_from_inside_a_container(self, groups: Groups) -> None:
        groups.member("4:cpu,cpuacct:/docker/1f")
        groups.file("cpu/cpu.cfs_quota_us", "400000\n")
        groups.file("cpu/cpu.cfs_period_us", "100000\n")
        assert groups.quota() == 4

    def test_version_1_without_a_limit(self, groups: Groups) -> None:
        groups.member("4:cpu:/")
        groups.file("cpu/cpu.cfs_quota_us", "-1\n")
        groups.file("cpu/cpu.cfs_period_us", "100000\n")
        assert groups.quota() is None

    @given(content=st.text(max_size=40), limit=st.text(max_size=20))
    def test_nonsense_is_no_limit_and_no_failure(
        self, tmp_path_factory: pytest.TempPathFactory, content: str, limit: str
    ) -> None:
        groups = Groups(tmp_path_factory.mktemp("groups"))
        (groups.proc / "self" / "cgroup").write_bytes(content.encode("utf-8", "surrogatepass"))
        (groups.mounts / "cpu.max").write_bytes(limit.encode("utf-8", "surrogatepass"))
        quota = groups.quota()
        assert quota is None or quota > 0

    def test_a_system_without_control_groups(self, tmp_path: Path) -> None:
        assert twin.cpu_quota(tmp_path, tmp_path) is None


@posix
def test_terminal_modes_come_back() -> None:
    if sys.platform != "win32":
        import pty
        import tty

        main, terminal = pty.openpty()
        try:
            before = platform.terminal_modes(terminal)
            assert before is not None
            tty.setraw(terminal)
            assert platform.terminal_modes(terminal) != before
            platform.restore_terminal(terminal, before)
            assert platform.terminal_modes(terminal) == before
        finally:
            os.close(main)
            os.close(terminal)


def test_a_file_is_no_terminal(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file:
        assert platform.terminal_modes(file.fileno()) is None


@posix
@pytest.mark.parametrize(("term", "dumb"), [("dumb", True), ("", True), ("unknown", True), ("xterm-256color", False)])
def test_a_dumb_terminal_is_known_by_its_name(term: str, dumb: bool) -> None:
    assert platform.is_terminal_dumb({"TERM": term}) is dumb


@posix
def test_a_terminal_without_a_name_is_dumb() -> None:
    assert platform.is_terminal_dumb({}) is True


def test_signals_have_names() -> None:
    assert platform.signal_name(signal.SIGSEGV) == "SIGSEGV"
    assert platform.signal_name(4000) == "signal 4000"


def test_the_processor_has_a_name() -> None:
    assert platform.cpu_name().strip()


def test_the_twins_offer_the_same_names() -> None:
    """Read from the source: a twin does not import on the other system."""
    import ast

    def public(module: str) -> set[str]:
        tree = ast.parse((Path(platform.__file__).parent / module).read_text(encoding="utf-8"))
        names: set[str] = set()
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.Assign):
                names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
            elif isinstance(node, ast.If):
                # a function that is different by system inside one of them
                names |= {inner.name for inner in node.body if isinstance(inner, ast.FunctionDef)}
        return {name for name in names if not name.startswith("_")}

    assert public("_posix.py") == public("_windows.py")
