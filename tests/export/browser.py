"""A real browser without a window, driven over its own debugging pipe; nothing has to be installed beside it."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from time import monotonic
from typing import Any

NAMES = ("chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser", "google-chrome")
PATIENCE_S = 180.0


def found() -> str | None:
    """The program, where there is one that can be driven."""
    if os.name == "nt":
        return None  # its pipes are handles, which it is not told by number
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Page:
    """One tab."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._selector = DefaultSelector()
        self._selector.register(from_browser, EVENT_READ)
        self._rest = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        """All that was told unasked: requests, errors, dialogs."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Security", "Audits"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask and wait for the reply."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("id") == self._number:
                assert "error" not in told, told
                reply: dict[str, Any] = told["result"]
                return reply

    def wait_for(self, method: str) -> None:
        """Wait for an event of this kind, unless it came already."""
        while not any(event["method"] == method for event in self.events):
            self._next()

    def open(self, path: Path) -> None:
        self.call("Page.navigate", url=path.as_uri())
        self.wait_for("Page.loadEventFired")

    def value(self, script: str) -> Any:
        """What a line of JavaScript comes to."""
        told = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def looks(self, width: int, height: int, *, dark: bool = False, printed: bool = False) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media="print" if printed else "", features=[scheme])

    def screenshot(self, path: Path) -> None:
        told = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(told["data"]))

    def told(self, *methods: str) -> list[dict[str, Any]]:
        return [event["params"] for event in self.events if event["method"] in methods]

    def _next(self) -> dict[str, Any]:
        deadline = monotonic() + PATIENCE_S
        while b"\0" not in self._rest:
            assert self._selector.select(deadline - monotonic()), "the browser says nothing"
            more = os.read(self._from, 1 << 20)
            assert more, "the browser ended"
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        if "method" in message:
            self.events.append(message)
        return message


@contextmanager
def browser(folder: Path) -> Iterator[Page]:
    """Start it with nothing of the user's, and end it.

    Args:
        folder: For its profile.
    """
    program = found()
    assert program is not None
    read_end, to_browser = os.pipe()
    from_browser, write_end = os.pipe()

    def place() -> None:
        # It reads from 3 and writes to 4; the copies keep either from being overwritten.
        read_copy, write_copy = os.dup(read_end), os.dup(write_end)
        os.dup2(read_copy, 3)
        os.dup2(write_copy, 4)

    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--hide-scrollbars"]
    process = subprocess.Popen(
        [program, *flags, "--disable-dev-shm-usage", f"--user-data-dir={folder}", "about:blank"],
        preexec_fn=place,
        pass_fds=(3, 4),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(read_end)
    os.close(write_end)
    try:
        yield Page(to_browser, from_browser)
    finally:
        os.close(to_browser)
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
        process.kill()
        process.wait()
        os.close(from_browser)
