"""Calibration: over scripted workers of known speed, as a command, and the engine's own measurement."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace

from homeai.clock import now_ns
from homeai.engine.llamacpp import measuring
from homeai.engine.llamacpp.native import Context
from homeai.engine.wire import Measure
from homeai.errors import EngineError
from homeai.events import Ceilings, EngineFacts, Measured, Step
from homeai.lab import calibrate as calibrating
from homeai.lab.calibrate import Progress, calibrate
from homeai.lab.memory_read import last_level_cache_bytes, read_bytes_per_s
from homeai.lab.processor_time import ProcessorTime
from homeai.lab.verdict import left_out, meaning, refused
from homeai.metrics.roofline import fit
from homeai.metrics.soundness import disturbances
from homeai.models.modelfile import ModelFile
from homeai.settings import tuned
from tests.cli.conftest import Homeai, assert_gone
from tests.engine.rig import Rig, starter
from tests.lab.test_tune import settings
from tests.models.tiny import write_chat_model


@pytest.fixture
def model(tmp_path: Path) -> ModelFile:
    path = tmp_path / "scripted.gguf"
    return ModelFile(name="scripted", path=path, shards=(path,), size_bytes=1000, kind="chat", source="path")


def ignore(progress: Progress) -> None:
    """For those who do not watch."""


def test_all_sizes_are_measured_and_described(model: ModelFile) -> None:
    seen: list[Progress] = []
    found, loaded = calibrate(settings(2), model, tell=seen.append)
    flat = [step for step in found.steps if step.depth == 0]
    assert [step.tokens for step in flat] == list(calibrating.SIZES)
    # The script says 1 ms and 0.1 ms a token.
    assert all(step.took_ns == 1_000_000 + 100_000 * step.tokens for step in flat)
    behind = [(1, 200), (1, 500), (1, 1010), (63, 1024), (64, 1024), (512, 1024)]
    assert [(step.tokens, step.depth) for step in found.steps if step.depth] == behind
    form = fit(found.steps)
    assert form is not None
    assert (form.form, round(form.fixed_ns), round(form.per_token_ns)) == ("sum", 1_000_000, 100_000)
    assert found.noise == 0.0
    # The script writes 500 tokens a second.
    assert found.written_ns is None or 1_500_000 < found.written_ns < 20_000_000
    assert found.read_bytes_per_s is not None
    assert found.threads == loaded.engine.threads
    # Of what other programs disturbed no verdict is passed: one token of 78 ms in the place of 5 used 3 % of memory.
    assert len(meaning(found, loaded)) >= 1
    assert meaning(replace(found, noise=3.2), loaded) == []
    assert seen[0].what == "loading the model"
    assert any(progress.what == "computing 512 tokens at once behind 1,024 tokens" for progress in seen)
    assert seen[-1].what == "reading memory"
    assert not psutil.Process().children()


def test_what_does_not_fit_into_the_budget_is_left_out(model: ModelFile) -> None:
    found, _ = calibrate(settings(2), model, budget_s=0.0, tell=ignore)
    assert [(step.tokens, step.depth) for step in found.steps] == [(1, 0), (2, 0), (4, 0)]
    assert "No more than 4 tokens at once were measured: 512 did not fit" in left_out(found)


def test_the_meter_stands_full_at_no_time(model: ModelFile) -> None:
    seen: list[Progress] = []
    calibrate(settings(2), model, budget_s=0.01, tell=seen.append)
    assert max(each.done for each in seen) < 1
    assert seen[-1].what == "reading memory"
    assert Progress("it", 0.5, 12.3).words == "it, about 12 s left"
    assert Progress("it", 0.99, 0.0).words == "it, longer than expected"
    assert Progress("it").words == "it"


def test_a_slow_machine_takes_little_more_than_its_time(model: ModelFile) -> None:
    """A token of 1 s: 1, 2 and 4 at once are measured; an answer of 64 tokens and 36 behind a context are too many."""
    made = calibrating._Bench(settings(2), model, 25.0, ignore, None)
    asked: list[tuple[int, int, int]] = []
    second = 1_000_000_000

    def measure(tokens: int, *, depth: int = 0, repeats: int = 1, keep: bool = False) -> bool:
        asked.append((tokens, depth, repeats))
        made._began_ns -= repeats * tokens * second
        made._took[(tokens, depth)] += [tokens * second] * repeats
        return True

    made._measure = measure  # type: ignore[method-assign]
    made._began_ns = now_ns()
    made._measure_sizes()
    made._measure_behind_context(EngineFacts(backend="x", build="1", context=4096))
    made.session.close()
    assert sum(tokens * repeats for tokens, _, repeats in asked) < 30
    assert all(depth == 0 for _, depth, _ in asked), "filling 256 tokens of context would take four minutes"


def test_a_machine_that_is_busy_is_told_from_one_that_is_slow(
    model: ModelFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under a steady load all times grow alike, repeats are even, and nothing but the processor time tells."""
    monkeypatch.setenv("HOMEAI_SCRIPT", "crowd=0.25")
    found, loaded = calibrate(settings(2), model, tell=ignore)
    assert found.engine_share == pytest.approx(0.25)
    assert found.others_share is not None
    assert (found.noise, found.spread, found.unordered) == (0.0, 0.0, 0.0)
    (reason,) = disturbances(found)
    assert "he engine got 25 % of the processor time that it can use." in reason
    assert meaning(found, loaded) == []
    words = refused(found, Ceilings(measured_at="2026-11-29T12:00:00.000+01:00"))
    assert "this measurement is not kept" in words
    assert "The one of 2026-11-29 stays in use." in words
    assert words.endswith("Close other programs and measure again.")


def test_what_other_programs_use_is_what_homeai_does_not() -> None:
    began = ProcessorTime()
    until_ns = now_ns() + 300_000_000
    while now_ns() < until_ns:
        pass
    share = began.others_share()
    assert share is not None
    # This process had one core; what is left is for others at most, give or take a tick of the clock they count by.
    assert 0 <= share <= 1


def test_what_was_disturbed_takes_no_longer_than_more_tokens_do(model: ModelFile, tmp_path: Path) -> None:
    made = calibrating._Bench(settings(2), model, 1.0, ignore, None)
    made._took.update(
        {(1, 0): [2_000], (2, 0): [20], (4, 0): [28, 40, 30], (1, 1024): [30], (63, 1024): [90], (64, 1024): [70]}
    )
    assert [(step.tokens, step.depth, step.took_ns) for step in made._steps()] == [
        (1, 0, 20),
        (2, 0, 20),
        (4, 0, 28),
        (1, 1024, 30),
        (63, 1024, 90),
        (64, 1024, 70),
    ]
    assert made._noise() is None
    # One token alone that takes longer than behind a context was disturbed, however even its repeats are.
    made._took.clear()
    made._took.update({(1, 0): [169] * 5, (512, 0): [900], (1, 200): [37]})
    assert [(step.tokens, step.depth, step.took_ns) for step in made._steps()] == [
        (1, 0, 37),
        (512, 0, 900),
        (1, 200, 37),
    ]
    noise = made._noise()
    assert noise is not None
    assert noise > 3
    made.session.close()


def test_a_failed_load_is_told(model: ModelFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOMEAI_SCRIPT", "at=load fail=1")
    with pytest.raises(EngineError, match="The script wants"):
        calibrate(settings(2), model, tell=ignore)
    assert not psutil.Process().children()


def test_what_the_listener_raises_ends_it(model: ModelFile) -> None:
    def stop(progress: Progress) -> None:
        if "4 tokens" in progress.what:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        calibrate(settings(2), model, tell=stop)
    assert not psutil.Process().children()


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_keeps_what_it_finds_beside_what_is_there(homeai: Homeai) -> None:
    path = write_chat_model(homeai.home / "tiny.gguf")
    done = homeai.run("calibrate", "--model", str(path), "--json")
    assert done.status == 0, done.err
    told = done.object()
    assert told["fit"]["form"] == "sum"
    assert told["fit"]["per_token_ms"] == pytest.approx(0.1)
    assert told["ceilings"]["steps"][0] == {"tokens": 1, "depth": 0, "took_ms": 1.1}
    place = tuned.Place(told["machine"], told["build"], tuned.model_name(path, path.stat().st_size))
    file = Path(told["written"])
    found = tuned.ceilings(file, place)
    assert found is not None
    assert found.steps[0] == Step(tokens=1, took_ns=1_100_000)

    tuned.write_measured(file, place, {"threads": 1}, at="2026-11-30T01:00:00+01:00", answer_ms={})
    assert tuned.ceilings(file, place) == found
    tuned.write_ceilings(file, place, Ceilings(measured_at="now"))
    assert tuned.ceilings(file, place) == Ceilings(measured_at="now")
    assert tuned.measured(file, place).values == {"threads": 1}


def test_the_command_says_it_in_words(homeai: Homeai) -> None:
    path = write_chat_model(homeai.home / "tiny.gguf")
    done = homeai.run("calibrate", "--model", str(path))
    assert done.status == 0
    assert "tokens at once" in done.out
    assert "about 1.00 ms however few tokens it has, and 0.10 ms more for each" in done.out
    assert "Kept." in done.err


def test_a_disturbed_measurement_leaves_the_one_before_as_it_was(homeai: Homeai) -> None:
    path = write_chat_model(homeai.home / "tiny.gguf")
    assert homeai.run("calibrate", "--model", str(path), "--json").status == 0
    file = homeai.home / "state" / tuned.FILE_NAME
    before = file.read_bytes()
    done = homeai.run("calibrate", "--model", str(path), "--json", script="crowd=0.3")
    assert done.status == 1
    assert "the engine got 30 % of the processor time" in done.err
    assert "stays in use" in done.err
    assert "Kept." not in done.err
    told = done.object()
    assert told["written"] is None
    assert len(told["ceilings"]["disturbances"]) == 1
    assert file.read_bytes() == before
    shown = homeai.run("calibrate", "--model", str(path), script="crowd=0.3")
    assert shown.out.startswith("Not kept, of a machine that was busy:\n")
    assert "A computation takes" not in shown.out
    assert file.read_bytes() == before


def test_what_was_measured_can_be_forgotten(homeai: Homeai) -> None:
    path = write_chat_model(homeai.home / "tiny.gguf")
    told = homeai.run("calibrate", "--model", str(path), "--json").object()
    file, place = Path(told["written"]), tuned.Place(told["machine"], told["build"], told["model"]["path"])
    place = tuned.Place(place.machine, place.build, tuned.model_name(path, path.stat().st_size))
    other = tuned.Place("another machine", "b", "m")
    tuned.write_ceilings(file, other, Ceilings(measured_at="now"))
    tuned.write_measured(file, place, {"threads": 1}, at="2026-11-30T01:00:00+01:00", answer_ms={})
    done = homeai.run("calibrate", "--forget", "--model", str(path))
    assert done.status == 0
    assert "Forgotten." in done.err
    assert tuned.ceilings(file, place) is None
    assert tuned.measured(file, place).values == {"threads": 1}
    assert tuned.ceilings(file, other) == Ceilings(measured_at="now")
    again = homeai.run("calibrate", "--forget", "--json", "--model", str(path))
    assert again.object()["forgotten"] is False
    assert "Nothing was kept" in again.err


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
def test_a_signal_changes_nothing(homeai: Homeai) -> None:
    path = write_chat_model(homeai.home / "tiny.gguf")
    running = homeai.start("calibrate", "--model", str(path), script="load_ms=5000")
    workers = running.wait_for_workers()
    running.process.send_signal(signal.SIGINT)
    done = running.finish()
    assert done.status == 130
    assert "Stopped; nothing was changed." in done.err
    assert not (homeai.home / "state" / tuned.FILE_NAME).exists()
    assert_gone(workers)


def test_ceilings_of_another_shape_are_none(tmp_path: Path) -> None:
    place = tuned.Place("m", "b", "x")
    file = tmp_path / "tuned.json"
    assert tuned.ceilings(file, place) is None
    file.write_text(
        '{"schema": 1, "entries": [{"machine": "m", "build": "b", "model": "x", "ceilings": {"steps": 7}}]}'
    )
    assert tuned.ceilings(file, place) is None


# --- what is measured -------------------------------------------------------------------------------------------------


def test_memory_is_read_at_a_speed_that_memory_has(tmp_path: Path) -> None:
    told: list[None] = []
    found = read_bytes_per_s(2, available_bytes=1 << 30, tell=lambda: told.append(None))
    assert found is not None
    assert 0.5e9 < found < 2e12
    assert len(told) >= 3
    assert read_bytes_per_s(2, available_bytes=64 << 20) is None


@pytest.mark.parametrize(("sizes", "expected"), [(["48K", "32768K"], 32 << 20), (["1M"], 1 << 20), (["?", ""], None)])
def test_the_size_of_the_last_cache(tmp_path: Path, sizes: list[str], expected: int | None) -> None:
    for index, size in enumerate(sizes):
        (tmp_path / f"index{index}").mkdir()
        (tmp_path / f"index{index}" / "size").write_text(f"{size}\n")
    assert last_level_cache_bytes(tmp_path) == expected


@pytest.fixture
def measured(tmp_path: Path) -> Callable[..., Measured]:
    rig = Rig()
    rig.load(write_chat_model(tmp_path / "tiny.gguf"), context=512, batch=256, ubatch=128)
    rig.answer("Something that is in the cache.")

    def run(*, keep: bool = False, **changes: int) -> Measured:
        rig.facts.clear()
        rig.backend.measure(Measure(measure_id=3, keep=keep, **changes))
        if keep:
            return rig.one(Measured)
        assert rig.backend.slots[0].ids == []
        assert rig.backend.context.length(0) == 0
        return rig.one(Measured)

    return run


def test_the_engine_times_each_repeat(measured: Callable[..., Measured]) -> None:
    found = measured(tokens=8, depth=200, repeats=3)
    assert (found.measure_id, found.tokens, found.depth, len(found.took_ns)) == (3, 8, 200, 3)
    assert all(0 < span < 5_000_000_000 for span in found.took_ns)
    # All threads together had no more than all cores have, give or take a tick of a clock that may be coarse.
    assert found.cpu_ns is not None
    assert 0 <= found.cpu_ns <= sum(found.took_ns) * (os.cpu_count() or 1) + 20_000_000


def test_what_is_kept_need_not_be_read_again(
    measured: Callable[..., Measured], monkeypatch: pytest.MonkeyPatch
) -> None:
    filled: list[int] = []
    fill = measuring._fill

    def counted(context: Context, ids: list[int]) -> bool:
        filled.append(len(ids))
        return fill(context, ids)

    monkeypatch.setattr(measuring, "_fill", counted)
    assert len(measured(tokens=8, depth=200, repeats=3, keep=True).took_ns) == 3
    assert len(measured(tokens=1, depth=150, repeats=2, keep=True).took_ns) == 2
    assert len(measured(tokens=16, depth=100).took_ns) == 1
    assert filled == [200]
    # The last one left nothing, so the next begins anew.
    assert len(measured(tokens=1, depth=100).took_ns) == 1
    assert filled == [200, 100]


def test_a_question_empties_what_was_kept(tmp_path: Path) -> None:
    rig = Rig()
    rig.load(write_chat_model(tmp_path / "tiny.gguf"), context=512, batch=256, ubatch=128)
    alone = rig.answer("Something that is in the cache.")
    rig.backend.measure(Measure(measure_id=1, tokens=8, depth=200, keep=True))
    again = rig.answer("Something that is in the cache.")
    assert rig.text(again) == rig.text(alone)
    rig.close()


@pytest.mark.parametrize("changes", [{"tokens": 257}, {"tokens": 0}, {"tokens": 1, "depth": 512}])
def test_what_does_not_fit_has_no_spans(measured: Callable[..., Measured], changes: dict[str, int]) -> None:
    assert measured(repeats=2, **changes).took_ns == ()


def test_without_a_model_there_are_no_spans() -> None:
    rig = Rig()
    rig.backend.measure(Measure(measure_id=1, tokens=1))
    assert rig.one(Measured).took_ns == ()


def test_more_tokens_take_longer(tmp_path: Path) -> None:
    rig = Rig()
    rig.load(starter(), context=1024)
    for tokens, repeats in ((1, 20), (128, 3)):
        rig.backend.measure(Measure(measure_id=tokens, tokens=tokens, repeats=repeats))
    few, many = rig.of(Measured)
    assert 3 * min(few.took_ns) < min(many.took_ns)
    rig.close()
