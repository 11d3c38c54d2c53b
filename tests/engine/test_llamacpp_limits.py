"""A full context, a failing engine, models that cannot be loaded: told, and usable afterwards."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from homeai.engine.llamacpp.native import DECODED, NO_SLOT
from homeai.events import LoadEnded, LoadFailed, LoadProgress, Notice, Prefilled, Sampler, Tokenised, Tokens
from homeai.metrics.roofline import kv_bytes_per_token
from tests.engine.rig import Rig, load_request, user
from tests.models.tiny import write_chat_model

pytestmark = pytest.mark.model

FIVE = Sampler(temperature=0.0, max_tokens=5)


@pytest.fixture
def small(fresh: Rig, tmp_path: Path) -> Rig:
    """A context of 512 tokens, and a model that writes for ever."""
    fresh.load(write_chat_model(tmp_path / "tiny.gguf"), context=512)
    return fresh


def prompt_of(rig: Rig, tokens: int) -> str:
    """A user message whose whole prompt is exactly so many tokens long."""
    base = rig.one(Tokenised, rig.answer("a", Sampler(temperature=0.0, max_tokens=1))).prompt
    # Single letters between spaces stay single tokens in the tiny vocabulary, whatever they are next to.
    text = "a"
    while True:
        rig.backend.reset()
        length = rig.one(Tokenised, rig.answer(text, Sampler(temperature=0.0, max_tokens=1))).prompt
        if length == tokens:
            rig.backend.reset()
            return text
        assert base <= length < tokens
        text += "z" * (tokens - length)


@pytest.mark.parametrize(("length", "reason", "written"), [(511, "context", 2), (512, "context", 1)])
def test_a_prompt_that_just_fits_is_answered_until_the_context_is_full(
    small: Rig, length: int, reason: str, written: int
) -> None:
    answer = small.answer(prompt_of(small, length), Sampler(temperature=0.0))
    ended = small.ended(answer)
    assert ended.finish_reason == reason
    assert len(small.ids(answer)) == written
    assert ended.context_used == 512


def test_a_prompt_one_token_too_long_is_refused_with_its_count_and_loses_nothing(small: Rig) -> None:
    kept = small.answer("Hello", FIVE)
    answer = small.answer(prompt_of(small, 512) + "z", FIVE)
    ended = small.ended(answer)
    assert ended.finish_reason == "error"
    assert ended.fault is not None
    assert ended.fault.code == "context_full"
    assert "513" in ended.fault.message
    assert "512" in ended.fault.message
    assert small.one(Tokenised, answer).prompt == 513
    assert small.of(Prefilled, answer) == []
    again = small.answer("Hello", FIVE)
    assert small.ids(again) == small.ids(kept)


def test_a_long_chat_without_limits_ends_as_context_full_and_the_next_chat_works(small: Rig) -> None:
    history: list[str] = []
    for turn in range(8):
        history.append(f"Question {turn} " + "x" * 40)
        answer = small.answer(user(*history), Sampler(temperature=0.0, max_tokens=60))
        history.append(small.text(answer) or "-")
        if small.ended(answer).finish_reason not in ("length", "stop"):
            break
    else:
        raise AssertionError("eight long turns fitted into 512 tokens")
    assert small.ended(answer).finish_reason == "context" or "context" in str(small.ended(answer).fault)
    fresh_chat = small.answer("Hello", FIVE)
    assert small.ended(fresh_chat).finish_reason == "length"


@pytest.mark.parametrize("outcome", [-1, -2, NO_SLOT])
def test_a_failed_decode_is_retried_once_from_an_empty_cache_and_told(small: Rig, outcome: int) -> None:
    expected = small.ids(small.answer(user("Hello", "Hi", "More"), FIVE))
    small.backend.reset()
    small.answer("Hello", FIVE)
    context = small.backend.context
    real, outcomes = context.decode, [outcome]
    context.decode = lambda: outcomes.pop() if outcomes else real()  # type: ignore[method-assign]
    answer = small.answer(user("Hello", "Hi", "More"), FIVE)
    assert small.ids(answer) == expected
    notice = small.one(Notice, answer)
    assert notice.code == "engine_retry"
    last = small.of(Tokenised, answer)[-1]
    assert (last.reused, small.of(Prefilled, answer)[-1].total) == (0, last.prompt)


def test_a_decode_that_fails_in_mid_answer_goes_on_where_it_was(small: Rig) -> None:
    expected = small.ids(small.answer("Hello", FIVE))
    small.backend.reset()
    answer = small.ask("Hello", FIVE)
    small.step_until(answer, 3)
    context = small.backend.context
    real, outcomes = context.decode, [-3]
    context.decode = lambda: outcomes.pop() if outcomes else real()  # type: ignore[method-assign]
    small.run()
    assert small.ids(answer) == expected
    assert len(small.of(Prefilled, answer)) == 1


def test_an_engine_that_keeps_failing_ends_the_answer_with_a_reason_and_works_again_later(small: Rig) -> None:
    context = small.backend.context
    real = context.decode
    context.decode = lambda: -3  # type: ignore[method-assign]
    answer = small.answer("Hello", FIVE)
    fault = small.ended(answer).fault
    assert fault is not None
    assert fault.code == "decode_failed"
    context.decode = real  # type: ignore[method-assign]
    assert small.ended(small.answer("Hello", FIVE)).finish_reason == "length"


def test_an_interrupt_before_during_and_after_an_answer_never_harms_the_next(small: Rig) -> None:
    expected = small.ids(small.answer("Hello", FIVE))
    small.backend.interrupt(99)
    small.backend.reset()
    one = small.ask("Hello", FIVE)
    small.step_until(one, 2)
    small.backend.interrupt(one)
    small.run()
    assert small.ended(one).finish_reason == "cancelled"
    small.backend.interrupt(one)
    small.backend.stop(one)
    two = small.answer("Hello", FIVE)
    assert small.ids(two) == expected
    after_end = small.facts[small.facts.index(small.ended(one)) :]
    assert not [fact for fact in after_end if isinstance(fact, Tokens) and fact.answer_id == one]


def test_what_was_read_before_a_stop_is_reused(small: Rig) -> None:
    small.load(Path(small.one(LoadEnded).model.path), context=2048, iteration_tokens=64)
    text = "y" * 1000
    stopped = small.ask(text, FIVE)
    for _ in range(4):
        small.backend.step()
    small.backend.interrupt(stopped)
    small.run()
    read = small.of(Prefilled, stopped)[-1].done
    assert 0 < read < small.one(Tokenised, stopped).prompt
    assert small.ended(stopped).context_used == read
    again = small.answer(text, FIVE)
    assert small.one(Tokenised, again).reused == read


def test_an_absurd_context_is_refused_before_it_is_allocated_with_what_would_fit(
    fresh: Rig, starter_path: Path
) -> None:
    fresh.load(starter_path, context=1 << 28)
    fault = fresh.one(LoadFailed).fault
    assert "268,435,456" in fault.message
    assert "GiB" in fault.message or "TiB" in fault.message
    assert "--context" in fault.help
    fresh.load(starter_path, context=512)
    assert fresh.one(LoadEnded).engine.context == 512


def test_a_context_beyond_the_trained_one_is_used_and_told(fresh: Rig, tmp_path: Path) -> None:
    model = write_chat_model(tmp_path / "tiny.gguf", context=512)
    fresh.load(model, context=1024)
    assert fresh.one(LoadEnded).engine.context == 1024
    assert fresh.one(Notice).code == "context_beyond_trained"
    fresh.facts.clear()
    fresh.load(model, context=0)
    assert fresh.one(LoadEnded).engine.context == 512
    assert fresh.of(Notice) == []


def test_a_load_that_fails_says_why_and_the_next_one_works(fresh: Rig, tmp_path: Path) -> None:
    good = write_chat_model(tmp_path / "tiny.gguf")
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(good.read_bytes()[: good.stat().st_size // 2])
    fresh.load(cut)
    fault = fresh.one(LoadFailed).fault
    assert fault.code == "load_failed"
    assert "cut" in fault.message
    assert not fresh.backend.busy
    homeless = fresh.answer("Hello", FIVE)
    assert fresh.ended(homeless).fault is not None
    fresh.load(good, context=512)
    assert fresh.ended(fresh.answer("Hello", FIVE)).finish_reason == "length"


def test_a_quantised_value_cache_without_flash_attention_is_refused_with_the_reason(fresh: Rig, tmp_path: Path) -> None:
    model = write_chat_model(tmp_path / "tiny.gguf")
    fresh.load(model, context=512, kv_type_v="q8_0", flash_attention=False)
    assert "lash" in fresh.one(LoadFailed).fault.message


@pytest.mark.parametrize("kind", ["q8_0", "q4_0", "bf16", "f32"])
def test_cache_types_are_what_was_asked_for(fresh: Rig, tmp_path: Path, kind: str) -> None:
    fresh.load(write_chat_model(tmp_path / "tiny.gguf"), context=512, kv_type_k=kind, kv_type_v=kind)
    engine = fresh.one(LoadEnded).engine
    assert (engine.kv_type_k, engine.kv_type_v) == (kind, kind)
    assert fresh.ended(fresh.answer("Hello", FIVE)).finish_reason == "length"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what is in the page cache")
def test_a_cold_file_is_read_with_progress_and_called_cold(fresh: Rig, starter_path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.gguf"
    copy.write_bytes(starter_path.read_bytes())
    if sys.platform == "linux":
        with copy.open("rb+") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    fresh.load(copy)
    ended = fresh.one(LoadEnded)
    assert ended.page_cache == "cold"
    read = [fact.done_bytes for fact in fresh.of(LoadProgress) if fact.stage == "file"]
    assert read
    assert read == sorted(read, key=lambda value: value or 0)
    fresh.facts.clear()
    fresh.load(copy)
    assert fresh.one(LoadEnded).page_cache == "warm"
    assert [fact for fact in fresh.of(LoadProgress) if fact.stage == "file"] == []


def test_a_load_names_all_stages_in_order(fresh: Rig, tmp_path: Path) -> None:
    request = load_request(write_chat_model(tmp_path / "tiny.gguf"), context=512)
    fresh.backend.load(request)
    stages = list(dict.fromkeys(fact.stage for fact in fresh.of(LoadProgress)))
    assert [stage for stage in stages if stage != "file"] == ["tensors", "context", "warmup"]
    assert fresh.backend.context.decode() == DECODED


def test_what_came_of_a_batch_before_an_abort_inside_it_is_kept_and_right(small: Rig) -> None:
    """One batch of four micro-batches, broken off in the third: two are in the cache, and they are reused."""
    path = Path(small.one(LoadEnded).model.path)
    small.load(path, context=2048, batch=256, ubatch=64, iteration_tokens=256)
    text = "y" * 400
    expected = small.ids(small.answer(text, FIVE))
    small.backend.reset()
    context = small.backend.context
    steps = context.graph_steps
    assert steps > 20
    stopped = small.ask(text, FIVE)
    real = context.decode

    def broken_off_in_the_third() -> int:
        context.decode = real  # type: ignore[method-assign]
        return context.decode_telling(lambda done: small.backend.interrupt(stopped) if done > 2.4 * steps else None)

    context.decode = broken_off_in_the_third  # type: ignore[method-assign]
    small.run()
    ended = small.ended(stopped)
    assert ended.finish_reason == "cancelled"
    assert ended.context_used == 128
    assert [chunk.done for chunk in small.of(Prefilled, stopped)] == [128]
    again = small.answer(text, FIVE)
    assert small.one(Tokenised, again).reused == 128
    assert small.ids(again) == expected


@pytest.mark.parametrize("sampled", [0, 3])
def test_the_time_of_an_answer_that_was_cut_short_is_accounted_for_to_its_end(small: Rig, sampled: int) -> None:
    answer = small.ask("Hello", Sampler(temperature=0.0))
    small.step_until(answer, sampled) if sampled else small.backend.step()
    small.backend.step()
    last_stamp = small.facts[-1].at_ns
    small.backend.stop(answer)
    ended = small.ended(answer)
    assert ended.parts is not None
    assert ended.parts.total_ns == pytest.approx(ended.at_ns - last_stamp, rel=0.01, abs=2e6)


def test_an_answer_behind_one_that_waits_for_room_goes_on_when_that_one_is_stopped(fresh: Rig, tmp_path: Path) -> None:
    fresh.load(write_chat_model(tmp_path / "tiny.gguf"), context=512, sequences=3)
    first = fresh.ask("a" * 250, Sampler(temperature=0.0, max_tokens=100))
    fresh.step_until(first, 2)
    large = fresh.ask("b" * 400, FIVE)
    fresh.backend.step()
    fresh.backend.stop(large)
    small_one = fresh.ask("c", FIVE)
    fresh.run()
    assert fresh.stamps(small_one)[-1] < fresh.stamps(first)[-1]


def test_a_budget_below_the_number_of_writers_starves_nobody(fresh: Rig, tmp_path: Path) -> None:
    fresh.load(write_chat_model(tmp_path / "tiny.gguf"), context=512, sequences=3, iteration_tokens=2)
    answers = [fresh.ask(letter, Sampler(temperature=0.0, max_tokens=80)) for letter in "abc"]
    fresh.run()
    assert fresh.stamps(answers[2])[0] < fresh.stamps(answers[0])[-1]


def test_a_file_that_cannot_be_read_is_a_failed_load_and_not_the_end_of_the_worker(
    fresh: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_chat_model(tmp_path / "tiny.gguf")

    def fails(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("homeai.engine.llamacpp.loading._bring_into_cache", fails)
    fresh.load(path)
    assert "Input/output error" in fresh.one(LoadFailed).fault.message


def test_without_gpu_layers_no_device_is_offered_to_the_engine(fresh: Rig, tmp_path: Path) -> None:
    fresh.load(write_chat_model(tmp_path / "tiny.gguf"), context=512, gpu_layers=0)
    assert [device.name for device in fresh.one(LoadEnded).engine.devices] == ["CPU"]
    assert fresh.ended(fresh.answer("Hello", FIVE)).finish_reason == "length"


def test_the_cache_takes_what_the_shape_says(fresh: Rig, starter_path: Path) -> None:
    fresh.load(starter_path, context=512)
    loaded = fresh.one(LoadEnded)
    assert loaded.model.shape is not None
    # 30 layers x 3 heads x (64 + 64) elements x 2 bytes, and what llama.cpp reports for 512 cells.
    assert kv_bytes_per_token(loaded.model.shape, "f16", "f16") == 30 * 3 * 128 * 2
    assert loaded.engine.devices[0].kv_bytes == 512 * 30 * 3 * 128 * 2
