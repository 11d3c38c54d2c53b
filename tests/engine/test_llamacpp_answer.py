"""One answer of the real starter model: its tokens, its facts in order, and sums that agree with other clocks."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from homeai.engine.llamacpp.library import api
from homeai.events import (
    AnyFact,
    Began,
    ChunkProgress,
    Ended,
    LoadEnded,
    LoadStarted,
    Message,
    Prefilled,
    Queued,
    Sampler,
    SlowStep,
    Templated,
    Text,
    Tokenised,
    Tokens,
)
from tests.benchmarks.bare import BareLoop
from tests.engine.rig import GREEDY, Rig, starter, user
from tests.models.tiny import write_chat_model

pytestmark = pytest.mark.model

QUESTION = "What is the capital of France? Answer shortly."
"""The starter model answers this in one short sentence, by a wide margin."""

LONG = "Tell me about this text. " + "The quick brown fox jumps over the lazy dog while the river runs by. " * 40


def test_greedy_tokens_equal_those_of_a_loop_that_shares_no_code(rig: Rig) -> None:
    answer = rig.answer(LONG)
    bare = BareLoop(str(starter()), context=4096, threads=2)
    text = (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        f"<|im_start|>user\n{LONG}<|im_end|>\n<|im_start|>assistant\n"
    )
    prompt = bare.tokenise(text)
    expected = bare.run(prompt, 32)
    bare.close()
    assert rig.one(Tokenised, answer).prompt == len(prompt)
    assert tuple(rig.ids(answer)) == expected.ids[: len(rig.ids(answer))]
    assert len(rig.ids(answer)) > 8


def test_facts_come_in_the_order_in_which_things_happen(rig: Rig) -> None:
    answer = rig.answer(QUESTION)
    # Only a slow machine has reason to tell of what is in between.
    kinds = [type(fact) for fact in rig.facts if not isinstance(fact, ChunkProgress | SlowStep)]
    heads = [Queued, Began, Templated, Tokenised, Prefilled, Tokens, Text]
    assert [kind for kind in dict.fromkeys(kinds) if kind is not Ended] == heads
    assert kinds[-1] is Ended
    assert rig.ended(answer).finish_reason == "stop"
    assert "Paris" in rig.text(answer)
    stamps = [fact.at_ns for fact in rig.facts]
    assert stamps == sorted(stamps)


def test_the_end_token_is_counted_and_not_shown(rig: Rig) -> None:
    answer = rig.answer(QUESTION)
    vocabulary = rig.backend.model.vocabulary
    assert vocabulary.is_end(rig.ids(answer)[-1])
    shown = b"".join(vocabulary.piece(token, special=False) for token in rig.ids(answer)[:-1])
    assert rig.text(answer) == shown.decode()


def test_parts_add_up_to_their_spans(rig: Rig) -> None:
    answer = rig.answer(LONG)
    chunks = rig.of(Prefilled, answer)
    assert len(chunks) > 1
    for before, chunk in pairwise(chunks):
        assert chunk.started_at_ns == before.at_ns
    span_ns = rig.prefill_ns(answer)
    assert sum(chunk.parts.total_ns for chunk in chunks) == pytest.approx(span_ns, rel=0.01, abs=2e6)
    assert sum(chunk.parts.compute_ns for chunk in chunks) > 0.9 * span_ns
    tokens = rig.of(Tokens, answer)
    stamps = rig.stamps(answer)
    columns = ("compute_ns", "sample_ns", "text_ns", "wait_other_ns", "idle_ns")
    for last, fact in pairwise(tokens):
        total_ns = sum(sum(getattr(fact, column)) for column in columns)
        assert total_ns == pytest.approx(fact.at_ns - last.at_ns, rel=0.01, abs=2e5)
    first = tokens[0]
    assert first.compute_ns == (0,)
    assert first.sample_ns[0] == pytest.approx(stamps[0] - chunks[-1].at_ns, abs=2e5)
    assert chunks[0].started_at_ns == rig.one(Tokenised, answer).at_ns


def test_rates_agree_with_the_clocks_of_llama_cpp(rig: Rig) -> None:
    """llama.cpp times its own decode calls: prompt batches and single tokens apart. Sampling is not in its figures."""
    context = rig.backend.context.pointer
    ratios: list[tuple[float, float]] = []

    def agree() -> bool:
        return any(abs(read - 1) <= 0.03 and abs(written - 1) <= 0.03 for read, written in ratios)

    # What holds this thread up between two clocks counts for one of them: on a busy machine once in a few answers.
    while not agree() and len(ratios) < 10:
        rig.backend.reset()
        rig.facts.clear()
        api.llama_perf_context_reset(context)
        answer = rig.answer(LONG, Sampler(temperature=0.0, max_tokens=64))
        perf = api.llama_perf_context(context)
        evaluated = rig.one(Tokenised, answer).prompt
        assert perf.n_p_eval == evaluated
        stamps = rig.stamps(answer)
        assert perf.n_eval == len(stamps) - 1
        tokens = rig.of(Tokens, answer)[1:]
        apart_ms = sum(sum(fact.sample_ns) + sum(fact.text_ns) + sum(fact.idle_ns) for fact in tokens) / 1e6
        decode_ms = (stamps[-1] - stamps[0]) / 1e6 - apart_ms
        ratios.append((perf.t_p_eval_ms / (rig.prefill_ns(answer) / 1e6), perf.t_eval_ms / decode_ms))
    assert agree(), ratios


def test_length_ends_an_answer_after_exactly_so_many_tokens(rig: Rig) -> None:
    answer = rig.answer(LONG, Sampler(temperature=0.0, max_tokens=5))
    assert rig.ended(answer).finish_reason == "length"
    assert len(rig.ids(answer)) == 5


def test_a_stop_string_ends_the_answer_and_is_not_shown(rig: Rig) -> None:
    whole = rig.text(rig.answer(QUESTION))
    assert "France" in whole
    answer = rig.answer(QUESTION, Sampler(temperature=0.0, max_tokens=32, stop=("France",)))
    assert rig.ended(answer).finish_reason == "stop"
    assert rig.text(answer) == whole.partition("France")[0]


def test_the_second_turn_reuses_the_first_with_its_answer(rig: Rig) -> None:
    first = rig.answer(QUESTION)
    held = rig.ended(first).context_used
    second = rig.answer(user(QUESTION, rig.text(first), "And of Italy? Answer shortly."))
    tokenised = rig.one(Tokenised, second)
    assert tokenised.reused == tokenised.cached == held
    assert rig.prefill_ns(second) > 0
    assert rig.of(Prefilled, second)[-1].done == tokenised.prompt - tokenised.reused
    rig.backend.reset()
    again = rig.answer(user(QUESTION, rig.text(first), "And of Italy? Answer shortly."))
    assert rig.one(Tokenised, again).reused == 0
    assert rig.ids(again) == rig.ids(second)


def test_sampled_tokens_go_back_as_they_were_although_their_text_tokenises_otherwise(
    fresh: Rig, tmp_path: Path
) -> None:
    fresh.load(write_chat_model(tmp_path / "tiny.gguf", says=["Good", " mor", "ning", ", friend"]), context=512)
    first = fresh.answer("Hello")
    text = fresh.text(first)
    assert text == "Good morning, friend"
    written = fresh.ids(first)[:-1]
    assert fresh.backend.model.vocabulary.tokenise(text.encode(), parse_special=False) != written
    said = Message(role="assistant", content=text, answer_id=first)
    again = fresh.answer((*user("Hello"), said, *user("Go on")))
    assert fresh.one(Tokenised, again).reused == fresh.ended(first).context_used
    forgotten = fresh.answer((*user("Hello"), Message(role="assistant", content=text), *user("Go on")))
    assert fresh.one(Tokenised, forgotten).reused == fresh.one(Tokenised, first).prompt


def test_an_edited_history_is_read_again_from_the_first_change(rig: Rig) -> None:
    rig.answer(LONG)
    edited = rig.answer(LONG.replace("lazy", "sleepy"))
    tokenised = rig.one(Tokenised, edited)
    assert 0 < tokenised.reused < tokenised.cached
    assert tokenised.reused < tokenised.prompt / 4


def test_asking_the_same_again_leaves_one_token_to_evaluate(rig: Rig) -> None:
    first = rig.answer(LONG, Sampler(temperature=0.0, max_tokens=1))
    again = rig.answer(LONG, Sampler(temperature=0.0, max_tokens=1))
    tokenised = rig.one(Tokenised, again)
    assert tokenised.reused == tokenised.prompt - 1
    assert rig.ids(again) == rig.ids(first)


def test_a_seed_makes_sampling_repeatable_and_none_draws_a_new_one(rig: Rig) -> None:
    def ask(seed: int | None) -> int:
        return rig.answer("Write a story.", Sampler(temperature=1.5, seed=seed, max_tokens=16))

    first, same, other = ask(5), ask(5), ask(6)
    assert rig.ids(first) == rig.ids(same) != rig.ids(other)
    assert rig.one(Began, first).seed == 5
    drawn = [rig.one(Began, ask(None)).seed for _ in range(2)]
    assert None not in drawn
    assert drawn[0] != drawn[1]
    assert rig.one(Began, rig.answer("Hi", GREEDY)).seed is None


@pytest.mark.parametrize("narrow", [{"top_k": 1}, {"top_p": 0.0001}, {"min_p": 1.0}], ids=["top-k", "top-p", "min-p"])
def test_a_filter_that_leaves_one_token_is_greedy(rig: Rig, narrow: dict[str, float]) -> None:
    greedy = rig.answer("Write a story.", Sampler(temperature=0.0, max_tokens=12))
    filtered = rig.answer("Write a story.", Sampler(temperature=1.5, seed=1, max_tokens=12, **narrow))  # type: ignore[arg-type]
    assert rig.ids(filtered) == rig.ids(greedy)


def test_the_repeat_penalty_looks_back_into_the_prompt(rig: Rig) -> None:
    prompt = "Repeat this word for ever: banana banana banana banana banana banana banana"
    plain = rig.answer(prompt, Sampler(temperature=0.0, max_tokens=24))
    penalised = rig.answer(prompt, Sampler(temperature=0.0, max_tokens=24, repeat_penalty=2.0))
    repeats = rig.text(plain).lower().count("banana")
    assert repeats > rig.text(penalised).lower().count("banana")


def test_a_load_tells_its_spans_and_where_the_model_went(fresh: Rig) -> None:
    fresh.load(starter(), gpu_layers=-1)
    started, ended = fresh.one(LoadStarted), fresh.one(LoadEnded)
    spans_ns = ended.file_ns + ended.context_ns + ended.warmup_ns
    assert spans_ns == pytest.approx(ended.at_ns - started.at_ns, rel=0.01, abs=2e6)
    assert ended.model.params == 134_515_008
    assert ended.model.arch == "llama"
    assert ended.model.template == "model"
    engine = ended.engine
    assert engine.layers_total == 31
    assert sum(device.layers for device in engine.devices) == 30
    assert (engine.context, engine.ubatch) == (4096, 512)
    weights = sum(device.model_bytes or 0 for device in engine.devices)
    assert weights == pytest.approx(starter().stat().st_size, rel=0.03)
    if not api.llama_supports_gpu_offload():
        assert engine.layers_offloaded == 0
    assert (engine.gpu_layers_asked, engine.gpu_asked, engine.kv_offload) == (-1, False, True)
    assert engine.graph_splits is not None


def test_a_slow_chunk_tells_its_progress_from_inside(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every chunk is called slow here; on a real slow machine one takes many seconds."""
    monkeypatch.setattr("homeai.engine.llamacpp.plan.SLOW_NS", 0)
    monkeypatch.setattr("homeai.engine.llamacpp.answer.PROGRESS_NS", 0)
    quick = rig.ids(rig.answer("Hello", GREEDY))
    rig.backend.reset()
    answer = rig.answer(LONG)
    told = rig.of(ChunkProgress, answer)
    chunks = rig.of(Prefilled, answer)
    assert len(told) > 5 * len(chunks)
    done = [fact.done for fact in told]
    assert done == sorted(done)
    assert done[0] < chunks[0].done
    assert max(done) <= chunks[-1].total == told[0].total
    for chunk, before in zip(chunks, [0, *(chunk.done for chunk in chunks)], strict=False):
        inside = [fact.done for fact in told if chunk.started_at_ns < fact.at_ns < chunk.at_ns]
        assert before <= inside[0] <= inside[-1] <= chunk.done
    monkeypatch.undo()
    rig.backend.reset()
    assert rig.ids(rig.answer("Hello", GREEDY)) == quick


def test_a_stop_inside_a_telling_chunk_acts_too(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homeai.engine.llamacpp.plan.SLOW_NS", 0)
    monkeypatch.setattr("homeai.engine.llamacpp.answer.PROGRESS_NS", 0)
    answer = rig.ask(LONG)

    def stop_at_the_first_progress(fact: AnyFact) -> None:
        if isinstance(fact, ChunkProgress):
            rig.backend.interrupt(answer)

    rig.listener = stop_at_the_first_progress
    rig.run()
    rig.listener = None
    assert rig.ended(answer).finish_reason == "cancelled"
    assert rig.of(Prefilled, answer)[-1].done == 0
