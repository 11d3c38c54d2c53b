"""Sessions over real workers that run the scripted backend."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from homeai.events import AnyFact
from homeai.models.modelfile import ModelFile
from homeai.session import Session
from tests.engine.recorder import OPTIONS, Recorder, eventually


class Listener(Recorder):
    """A recorder that also does what a test wants done within a fact."""

    def __init__(self) -> None:
        super().__init__()
        self.also: Callable[[AnyFact], None] = lambda _fact: None

    def __call__(self, fact: AnyFact) -> None:
        super().__call__(fact)
        self.also(fact)


Start = Callable[..., tuple[Session, Listener]]


@pytest.fixture
def model(tmp_path: Path) -> ModelFile:
    """A model that nobody opens."""
    return named_model(tmp_path, "scripted")


def named_model(folder: Path, name: str) -> ModelFile:
    """Another one."""
    path = folder / f"{name}.gguf"
    return ModelFile(name=name, path=path, shards=(path,), size_bytes=1000, kind="chat", source="path")


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, model: ModelFile) -> Iterator[Start]:
    """Start a session with this script for its workers; leaves nothing behind."""
    started: list[Session] = []

    def starting(script: str = "", *, load: bool = True) -> tuple[Session, Listener]:
        monkeypatch.setenv("HOMEAI_SCRIPT", script)
        recorder = Listener()
        session = Session(
            options=OPTIONS, on_fact=recorder, backend="tests.engine.scripted", log_file=tmp_path / "engine.log"
        )
        started.append(session)
        if load:
            session.use_model(model)
        return session, recorder

    yield starting
    for session in started:
        session.close()
    assert not psutil.Process().children()
    ours = ("engine-", "stop-")
    assert eventually(lambda: not any(thread.name.startswith(ours) for thread in threading.enumerate()))
