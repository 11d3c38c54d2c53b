"""The experiment over real workers that run the scripted backend: what is fast by the script is found."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from homeai.errors import BrokenModelError, EngineError
from homeai.lab.comparing import Verdict
from homeai.lab.tune import Progress, questions, tune
from homeai.models.modelfile import ModelFile
from homeai.platform import Cores
from homeai.settings import Machine, Settings, resolve
from tests.engine.recorder import eventually

NOWHERE = Path("no-such-folder") / "config.toml"
FAST = "tokens=400 rate=1000 prefill_rate=5000"
"""0.3 s for the typical answer."""


def settings(cores: int = 1, **flags: object) -> Settings:
    machine = Machine(Cores(cores, "test"), "Test CPU")
    return resolve({"backend": "tests.engine.scripted", **flags}, {}, NOWHERE, machine)


def ignore(progress: Progress) -> None:
    """For those who do not watch."""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., dict[str, Verdict]]]:
    """Tune with this script for the workers; leaves none behind."""
    path = tmp_path / "scripted.gguf"
    model = ModelFile(name="scripted", path=path, shards=(path,), size_bytes=1000, kind="chat", source="path")

    def running(
        script: str,
        chosen: Settings,
        budget_s: float = 3.0,
        tell: Callable[[Progress], None] = ignore,
    ) -> dict[str, Verdict]:
        monkeypatch.setenv("HOMEAI_SCRIPT", script)
        verdicts = tune(chosen, model, budget_s=budget_s, tell=tell, log_file=tmp_path / "engine.log")
        return {verdict.key: verdict for verdict in verdicts}

    yield running
    assert not psutil.Process().children()
    ours = ("engine-", "stop-")
    assert eventually(lambda: not any(thread.name.startswith(ours) for thread in threading.enumerate()))


Run = Callable[..., dict[str, Verdict]]


def test_the_faster_value_is_chosen_and_is_in_use_for_what_is_compared_next(run: Run) -> None:
    seen = []
    verdicts = run(
        f"{FAST} slow=flash_attention:None:2,threads:1:100",
        settings(2),
        30.0,
        lambda progress: seen.append((progress.key, progress.shown)),
    )
    flash, threads = verdicts["flash_attention"], verdicts["threads"]
    assert (flash.decided, flash.default, flash.chosen, flash.prompt_tokens) == (True, "auto", "off", 500)
    auto, off = flash.candidates
    assert (auto.value, off.value) == ("auto", "off")
    assert len(auto.trials) == len(off.trials) == 5
    # The script waits as long as its rates say; on a busy machine longer, but never less.
    assert off.answer_s is not None
    assert auto.answer_s is not None
    assert off.answer_s > 0.3 * 0.95
    assert auto.answer_s > 0.6 * 0.95

    assert (threads.decided, threads.chosen) == (True, 2)
    two, one = threads.candidates
    assert threads.why == "stays: 1 took more than twice as long"
    assert (len(two.trials), len(one.trials)) == (1, 0)
    # With flash attention left on it would take as long as that did.
    assert two.answer_s is not None
    assert two.answer_s < 0.8 * auto.answer_s
    # The first answer, of no setting yet, is often over before anything is told of it.
    order = [("flash_attention", "auto"), ("flash_attention", "off"), ("threads", "2"), ("threads", "1")]
    told = [moment for moment in dict.fromkeys(seen) if moment != ("", "")]
    assert told == order[: len(told)]
    assert len(told) >= 3


@pytest.mark.parametrize("misbehaviour", ["at=load fail=1", "at=3 die=9"])
def test_a_value_with_which_the_engine_fails_is_not_chosen(run: Run, misbehaviour: str) -> None:
    verdict = run(f"{FAST} slow=flash_attention:None:2 only=flash_attention:False {misbehaviour}", settings())[
        "flash_attention"
    ]
    assert (verdict.decided, verdict.chosen) == (True, "auto")
    assert verdict.why.startswith("stays: off failed: The ")


def test_an_engine_that_fails_from_the_start_is_an_error(run: Run) -> None:
    with pytest.raises(EngineError, match="The script wants the load to fail") as failed:
        run("at=load fail=1", settings())
    assert failed.value.code == "load_failed"


def test_a_file_that_cannot_chat_is_told_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "page.gguf").write_text("<html>")
    from homeai.models.modelfile import examine

    with pytest.raises(BrokenModelError):
        tune(settings(), examine(tmp_path / "page.gguf"), budget_s=3, tell=ignore)
    assert not psutil.Process().children()


def test_a_machine_that_is_too_slow_keeps_what_it_has(run: Run) -> None:
    chosen = settings(4).with_measured({"threads": 2})
    verdicts = run("tokens=400 rate=1 prefill_rate=5000", chosen, 0.5)
    assert [verdict.decided for verdict in verdicts.values()] == [False, False]
    assert (verdicts["flash_attention"].chosen, verdicts["threads"].chosen) == ("auto", 2)
    assert verdicts["threads"].why == "not compared: a few words take more than 0.5 s"


def test_what_was_measured_before_stays_where_there_is_no_time(run: Run) -> None:
    chosen = settings(4).with_measured({"threads": 2})
    verdicts = run(f"{FAST} load_ms=600", chosen, 2.0)
    for verdict in verdicts.values():
        assert (verdict.decided, verdict.why) == (False, "not compared: no time was left")
    assert (verdicts["threads"].default, verdicts["threads"].chosen) == (4, 2)


def test_the_experiment_ends_when_its_listener_wants_it(run: Run) -> None:
    def tell(progress: Progress) -> None:
        if progress.key:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run("tokens=400 rate=100 prefill_rate=5000", settings(), 30.0, tell)


class TestQuestions:
    def asked(self, settings: Settings, flash_in_use: bool | None = True) -> dict[str, tuple[str, ...] | str]:
        return {
            question.key: question.skipped or tuple(candidate.shown for candidate in question.candidates)
            for question in questions(settings, flash_in_use)
        }

    @pytest.mark.parametrize(
        ("in_use", "shown"), [(True, ("auto (on)", "off")), (False, ("auto (off)", "on")), (None, ("auto", "off"))]
    )
    def test_flash_attention_is_compared_with_its_opposite(self, in_use: bool | None, shown: tuple[str, ...]) -> None:
        assert self.asked(settings(), in_use)["flash_attention"] == shown

    @pytest.mark.parametrize(
        ("cores", "threads"),
        [(1, "there is one core only"), (2, ("2", "1")), (3, ("3", "1")), (4, ("4", "2", "1")), (16, ("16", "8", "1"))],
    )
    def test_numbers_of_threads(self, cores: int, threads: tuple[str, ...] | str) -> None:
        assert self.asked(settings(cores))["threads"] == threads

    def test_what_the_user_set_is_left_alone(self) -> None:
        asked = self.asked(settings(4, threads=3, flash_attention="on"))
        assert asked == {"flash_attention": "set by --flash-attention", "threads": "set by --threads"}

    def test_what_contradicts_a_choice_is_not_asked(self) -> None:
        asked = self.asked(settings(1, kv_type_v="q8_0"))
        assert asked["flash_attention"] == "no other value goes with the other settings"
