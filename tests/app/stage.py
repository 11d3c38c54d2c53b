"""A session played by hand, and an application over it: for states that must stand still to be looked at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from homeai.app.app import HomeaiApp
from homeai.errors import EngineError
from homeai.events import AnyFact, Calibrated, Ceilings, Sample, Sampler, SessionStarted, Submitted
from homeai.metrics.fold import fold
from homeai.metrics.state import SessionState
from homeai.metrics.talks import Talk
from homeai.models.modelfile import ModelFile
from homeai.options import EngineOptions
from homeai.session import Chat
from tests.metrics.stories import ms
from tests.stopwatch import Stopwatch

NOW_MS = 20_000.0

MODEL = ModelFile(
    name="Tiny-Instruct.Q4_1",
    path=Path("/m.gguf"),
    shards=(Path("/m.gguf"),),
    size_bytes=98_362_432,
    kind="chat",
    source="path",
    quant="Q4_1",
)


class Stage:
    """What the application sees as its session; the test plays the facts."""

    def __init__(self, on_fact: Callable[[AnyFact], None]) -> None:
        self._on_fact = on_fact
        self.state = SessionState()
        self.asked: list[Submitted] = []
        self.stopped: list[int] = []
        self.chats: list[Chat] = []
        self.models: list[ModelFile] = []
        self.options: list[EngineOptions | None] = []
        """How each of them is to be run, where that was said."""
        self.load_stops = 0
        self.samples: list[Sample] = []
        self.titles: list[str] = []
        self.closed = 0
        self.refuse: Exception | None = None
        """What the next `ask` raises."""
        self.busy = False
        """Whether `use_model` is refused, as while an answer runs."""

    def play(self, *facts: AnyFact) -> None:
        for fact in facts:
            self.state = fold(self.state, fact)
            self._on_fact(fact)

    @property
    def model(self) -> ModelFile | None:
        return self.models[-1] if self.models else None

    @property
    def model_options(self) -> EngineOptions | None:
        return self.options[-1] if self.options else None

    def use_model(self, model: ModelFile, *, options: EngineOptions | None = None) -> None:
        if self.busy:
            raise EngineError("An answer is being written.", code="busy")
        self.models.append(model)
        self.options.append(options)

    def stop_load(self) -> None:
        self.load_stops += 1

    def open_chat(self, system: str | None = None) -> Chat:
        self.chats.append(Chat(len(self.chats) + 1, system))
        return self.chats[-1]

    def take_up(self, talk: Talk) -> Chat:
        self.chats.append(Chat(talk.chat_id, talk.system))
        return self.chats[-1]

    def ask(
        self,
        chat: Chat,
        prompt: str,
        *,
        sampler: Sampler,
        submitted_at_ns: int | None = None,
        replaces: int | None = None,
    ) -> int:
        if self.refuse is not None:
            raise self.refuse
        assert submitted_at_ns is not None
        answer_id = len(self.asked) + 1
        self.asked.append(
            Submitted(
                at_ns=submitted_at_ns,
                answer_id=answer_id,
                chat_id=chat.id,
                prompt=prompt,
                system=chat.system,
                sampler=sampler,
                replaces=replaces,
            )
        )
        return answer_id

    def set_system(self, chat: Chat, text: str | None) -> None:
        chat.system = text or None

    def stop(self, answer_id: int) -> None:
        self.stopped.append(answer_id)

    def put_away(self) -> EngineOptions | None:
        return self.model_options

    def set_ceilings(self, model: ModelFile, ceilings: Ceilings) -> None:
        self.play(Calibrated(at_ns=0, path=str(model.path), ceilings=ceilings))

    def rename(self, title: str) -> str:
        self.titles.append(title)
        return title

    def record(self, sample: Sample) -> None:
        self.samples.append(sample)

    def close(self) -> None:
        self.closed += 1


class StagedApp(HomeaiApp):
    """The application over a stage, at a moment that does not pass."""

    def __init__(self, *facts: AnyFact, now_ms: float = NOW_MS, **more: Any) -> None:
        self.stage: Stage | None = None
        self.now_ns = ms(now_ms)
        self._first_facts = facts

        def open_session(on_fact: Callable[[AnyFact], None]) -> Stage:
            self.stage = Stage(on_fact)
            self.stage.play(SessionStarted(at_ns=0, session="s", started_at="2026-11-29T21:04:05Z", app_version="1"))
            self.stage.play(*self._first_facts)
            return self.stage

        more.setdefault("sampler", Sampler(temperature=0.0))
        super().__init__(more.pop("open_session", open_session), clock=lambda: self.now_ns, **more)

    @property
    def played(self) -> Stage:
        assert self.stage is not None
        return self.stage


async def until(pilot: Pilot[Any], holds: Callable[[], object], within_s: float = 30.0) -> None:
    """Let the application run until something holds."""
    watch = Stopwatch()
    while not holds():
        assert watch.seconds < within_s, f"did not happen in {within_s} s; the screen:\n{screen_text(pilot)}"
        await pilot.pause(0.02)


async def ready(pilot: Pilot[Any]) -> StagedApp:
    """Wait for the staged session to be taken and its first facts to be shown."""
    app = pilot.app
    assert isinstance(app, StagedApp)
    await until(pilot, lambda: app.session is not None and not app.waits_for_facts)
    await pilot.pause()
    return app


async def play(pilot: Pilot[Any], *facts: AnyFact) -> None:
    """Play facts and wait until the screen has taken them."""
    app = pilot.app
    assert isinstance(app, StagedApp)
    app.played.play(*facts)
    await until(pilot, lambda: not app.waits_for_facts)
    await pilot.pause()


async def asked(pilot: Pilot[Any], *facts: AnyFact) -> StagedApp:
    """Ask, and play what followed; the question's own fact comes with the story."""
    app = await ready(pilot)
    await pilot.press("x", "enter")
    await until(pilot, lambda: app.played.asked)
    await play(pilot, *facts)
    return app


def screen_text(pilot: Pilot[Any]) -> str:
    """What is on the screen now, as lines of text."""
    return "\n".join(strip.text for strip in pilot.app.screen._compositor.render_strips())
