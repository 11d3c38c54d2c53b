"""Not a probe: the engine's worker and its children, whose share of the machine the probes tell."""

from __future__ import annotations

import psutil

from probes.reading import Problem, Scene, attempt

_FAMILY_KEPT_NS = 5_000_000_000
"""How long a list of children is used: finding them reads every process of the machine (8 ms for 300 processes)."""


class Family:
    """The engine's worker with its children."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._root: psutil.Process | None = None
        self._children: list[psutil.Process] = []
        self._listed_at_ns = 0

    def members(self) -> list[psutil.Process] | Problem:
        """The processes that live now. A worker that was replaced is noticed by its id."""
        pid = self._scene.engine_pid()
        if pid is None:
            return Problem("no engine is running")
        if self._root is None or self._root.pid != pid:
            root = attempt(lambda: psutil.Process(pid))
            if isinstance(root, Problem):
                return root
            self._root, self._children, self._listed_at_ns = root, [], 0
        self._list_children(self._root)
        return [self._root, *self._children]

    def _list_children(self, root: psutil.Process) -> None:
        now = self._scene.clock()
        if self._listed_at_ns and now - self._listed_at_ns < _FAMILY_KEPT_NS:
            return
        known = {child.pid: child for child in self._children}
        # The old object is kept where it is the same process, so that its counters stay comparable.
        children = attempt(lambda: [_same(known, child) for child in root.children(recursive=True)])
        self._children = [] if isinstance(children, Problem) else children
        self._listed_at_ns = now


def _same(known: dict[int, psutil.Process], child: psutil.Process) -> psutil.Process:
    before = known.get(child.pid)
    return before if before == child else child
