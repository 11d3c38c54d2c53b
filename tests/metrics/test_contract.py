"""The JSON object of an answer: names, nesting and order are a contract with scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from homeai.events import (
    AnyFact,
    Began,
    EngineEnded,
    Fault,
    LoadFailed,
    Sample,
    Sampler,
    SessionStarted,
)
from homeai.metrics.contract import contract, failure_contract
from homeai.metrics.fold import fold_all
from homeai.metrics.state import SessionState
from tests.metrics import stories
from tests.metrics.stories import ms

KEYS = (
    "schema session answer_id started_at model engine sampler answer reasoning finish_reason error tokens load "
    "phases_ms prefill_parts_ms decode_parts_ms shared ttft_ms first_text_ms first_answer_ms rates gaps_ms findings "
    "machine missing basis"
)
NESTED = {
    "model": "name path size_bytes params quant",
    "engine": "backend build devices layers_offloaded layers_total threads threads_batch batch ubatch flash_attention "
    "kv_type_k kv_type_v context",
    "sampler": "temperature seed max_tokens top_k top_p min_p repeat_penalty stop",
    "tokens": "prompt reused evaluated output reasoning",
    "load": "total_ms file_ms context_ms warmup_ms page_cache paid_by_this_answer cached_fraction major_faults",
    "phases_ms": "start load queue template tokenise prefill first_sample decode finish unaccounted total",
    "prefill_parts_ms": "compute sample text wait_other idle",
    "decode_parts_ms": "compute sample text wait_other idle",
    "rates": "prefill_tps decode_tps end_to_end_tps",
    "gaps_ms": "per n p50 p95 p99 max values",
}

FAILURES: dict[str, list[AnyFact]] = {
    "stopped in prefill": stories.stopped_in_prefill(),
    "died while writing": stories.died_while_writing(),
    "load failed": [
        *stories.session_facts()[:4],
        stories.submitted(220),
        LoadFailed(at_ns=ms(300), load_id=1, fault=Fault(code="load_failed", message="no memory")),
        stories.ended(301, "error", fault=Fault(code="load_failed", message="no memory")),
    ],
    "died at import": [
        *stories.session_facts()[:2],
        stories.submitted(20),
        EngineEnded(at_ns=ms(30), generation=1, fault=stories.DIED),
        stories.ended(31, "error", fault=stories.DIED),
    ],
    "no submit in the record": [stories.SESSION, *stories.writing_facts(), stories.ended(12_000)],
    "nothing but its end": [stories.ended(12_000)],
    "live": stories.whole_session()[:-3],
}


NOT_SAMPLED: dict[str, Any] = {
    "phases": {},
    "joules_per_prompt_token": None,
    "joules_per_output_token": None,
    "vram_peak_bytes": None,
    "vram_engine_peak_bytes": None,
    "energy_of": [],
    "throttles": [],
}
"""What the object says of the machine where no probe told of energy or of a GPU's memory."""


def nulls(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from nulls(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from nulls(inner, f"{path}.{index}")
    elif value is None:
        yield path


def assert_well_formed(written: dict[str, Any]) -> None:
    assert list(written) == KEYS.split()
    for name, keys in NESTED.items():
        assert list(written[name]) == keys.split(), name
    json.dumps(written, allow_nan=False)
    assert set(nulls(written)) - {"error"} == set(written["missing"])
    assert all(isinstance(reason, str) and reason for reason in written["missing"].values())
    for name in ("phases_ms", "prefill_parts_ms", "decode_parts_ms", "rates"):
        assert all(figure is None or isinstance(figure, float) for figure in written[name].values())


def test_a_whole_answer() -> None:
    written = contract(fold_all(stories.whole_session()), 1)
    assert_well_formed(written)
    values = written["gaps_ms"].pop("values")
    assert values[:3] == [66.0, 66.0, 66.0]
    assert (len(values), max(values), sum(values)) == (120, 256.0, 8110.0)
    text = "".join(f"w{first} " for first in range(0, 121, 7))
    assert written == {
        "schema": 1,
        "session": "s-1",
        "answer_id": 1,
        "started_at": "2026-11-29T21:04:06.000+01:00",
        "model": {
            "name": "Tiny",
            "path": "/models/tiny.gguf",
            "size_bytes": 98_362_432,
            "params": 134_515_008,
            "quant": "Q4_1",
        },
        "engine": {
            "backend": "llama.cpp",
            "build": "0.3.36",
            "devices": [
                {
                    "name": "CPU",
                    "layers": 30,
                    "model_bytes": 96_000_000,
                    "kv_bytes": 94_371_840,
                    "compute_bytes": None,
                }
            ],
            "layers_offloaded": 0,
            "layers_total": 31,
            "threads": 2,
            "threads_batch": 2,
            "batch": 512,
            "ubatch": 512,
            "flash_attention": True,
            "kv_type_k": "f16",
            "kv_type_v": "f16",
            "context": 4096,
        },
        "sampler": {
            "temperature": 0.0,
            "seed": None,
            "max_tokens": None,
            "top_k": 40,
            "top_p": 0.95,
            "min_p": 0.05,
            "repeat_penalty": 1.0,
            "stop": [],
        },
        "answer": text,
        "reasoning": "",
        "finish_reason": "stop",
        "error": None,
        "tokens": {"prompt": 1804, "reused": 1200, "evaluated": 604, "output": 121, "reasoning": 0},
        "load": {
            "total_ms": 131.0,
            "file_ms": 79.0,
            "context_ms": 48.0,
            "warmup_ms": 4.0,
            "page_cache": "warm",
            "paid_by_this_answer": False,
            "cached_fraction": 1.0,
            "major_faults": 3,
        },
        "phases_ms": {
            "start": 0.0,
            "load": 0.0,
            "queue": 0.4,
            "template": 0.3,
            "tokenise": 2.1,
            "prefill": 2310.0,
            "first_sample": 1.2,
            "decode": 8110.0,
            "finish": 0.5,
            "unaccounted": 0.2,
            "total": 10424.7,
        },
        "prefill_parts_ms": {"compute": 2304.0, "sample": 0.0, "text": 1.0, "wait_other": 0.0, "idle": 5.0},
        "decode_parts_ms": {"compute": 7830.0, "sample": 60.0, "text": 30.0, "wait_other": 0.0, "idle": 190.0},
        "shared": False,
        "ttft_ms": 2314.2,
        "first_text_ms": 2314.6,
        "first_answer_ms": 2314.6,
        "rates": {
            "prefill_tps": pytest.approx(261.4719),
            "decode_tps": pytest.approx(14.79655),
            "end_to_end_tps": pytest.approx(11.60705),
        },
        "gaps_ms": {"per": "token", "n": 120, "p50": 66.0, "p95": 66.0, "p99": None, "max": 256.0},
        "findings": [],
        "machine": {"major_faults": 5, **NOT_SAMPLED},
        "missing": {
            "engine.devices.0.compute_bytes": "the engine did not say",
            "sampler.seed": "greedy: no seed is used",
            "sampler.max_tokens": "no limit was set",
            "gaps_ms.p99": "needs 299 samples",
            **{
                f"machine.{name}": "the machine was not sampled" for name, value in NOT_SAMPLED.items() if value is None
            },
        },
        "basis": {},
    }


@pytest.mark.parametrize("name", FAILURES)
def test_every_null_has_its_reason(name: str) -> None:
    state = fold_all(FAILURES[name])
    written = contract(state, 1)
    assert_well_formed(written)
    assert written["missing"]


def test_stopped_in_prefill() -> None:
    written = contract(fold_all(FAILURES["stopped in prefill"]), 1)
    assert (written["finish_reason"], written["error"]) == ("cancelled", None)
    assert written["phases_ms"]["prefill"] == 1200.0
    assert written["tokens"] == {"prompt": 1804, "reused": 1200, "evaluated": 256, "output": 0, "reasoning": 0}
    assert written["rates"]["prefill_tps"] == 256.0
    for path in ("ttft_ms", "first_text_ms", "phases_ms.first_sample", "phases_ms.decode", "phases_ms.finish"):
        assert written["missing"][path] == "stopped in prefill"
    for path in ("rates.decode_tps", "rates.end_to_end_tps", "gaps_ms.p50", "decode_parts_ms.compute"):
        assert written["missing"][path] == "stopped in prefill"


def test_died_while_writing_keeps_its_text_and_tells_the_error() -> None:
    written = contract(fold_all(FAILURES["died while writing"]), 1)
    assert (written["finish_reason"], written["tokens"]["output"]) == ("error", 50)
    assert written["error"] == {"code": "engine_died", "message": "the engine died (signal 9)"}
    assert written["answer"].startswith("w0 w7 ")
    assert written["missing"]["phases_ms.finish"] == "failed in decode"


def test_a_failed_load_names_the_model_it_wanted() -> None:
    written = contract(fold_all(FAILURES["load failed"]), 1)
    assert (written["model"]["name"], written["model"]["params"]) == ("Tiny", None)
    assert written["engine"]["backend"] == "llama.cpp"
    assert written["missing"]["load.total_ms"] == "failed in load"
    assert written["load"]["paid_by_this_answer"] is True
    assert written["phases_ms"]["load"] == 81.0


def test_a_load_paid_by_the_answer_says_so() -> None:
    facts = stories.session_facts()
    facts.insert(1, stories.submitted(5))
    written = contract(fold_all([*facts, *stories.whole_answer()[1:]]), 1)
    assert_well_formed(written)
    assert (written["load"]["paid_by_this_answer"], written["load"]["total_ms"]) == (True, 131.0)
    assert (written["phases_ms"]["start"], written["phases_ms"]["load"]) == (195.0, 131.0)


def test_the_seed_is_the_one_in_use() -> None:
    asked = stories.submitted(1000, sampler=Sampler(seed=7, max_tokens=128, stop=("END",)))
    facts = [*stories.session_facts(), asked]
    assert contract(fold_all(facts), 1)["sampler"]["seed"] == 7
    written = contract(fold_all([*facts, Began(at_ns=ms(1001), answer_id=1, seed=99)]), 1)["sampler"]
    assert (written["seed"], written["max_tokens"], written["stop"]) == (99, 128, ["END"])
    random = stories.submitted(1000, sampler=Sampler())
    written = contract(fold_all([random, Began(at_ns=ms(1001), answer_id=1, seed=4_000_000_000)]), 1)["sampler"]
    assert written["seed"] == 4_000_000_000


@pytest.mark.parametrize(
    ("wall", "stamp_ns", "asked_ns", "expected"),
    [
        ("2026-11-29T21:04:05.123+01:00", 0, 0, "2026-11-29T21:04:05.123+01:00"),
        ("2026-11-29T23:59:59.999-05:30", ms(10), ms(12), "2026-11-30T00:00:00.001-05:30"),
        # `ask` stamps its entry before the session exists.
        ("2026-11-29T21:04:05.123+00:00", ms(500), ms(400), "2026-11-29T21:04:05.023+00:00"),
        ("yesterday", 0, 0, None),
        ("9999-12-31T23:59:59.999+00:00", 0, ms(1000), None),
    ],
)
def test_the_wall_time_of_the_question(wall: str, stamp_ns: int, asked_ns: int, expected: str | None) -> None:
    facts: list[AnyFact] = [
        SessionStarted(at_ns=stamp_ns, session="s", started_at=wall, app_version="0"),
        stories.submitted(asked_ns / 1e6),
    ]
    written = contract(fold_all(facts), 1)
    assert written["started_at"] == expected
    assert ("started_at" in written["missing"]) == (expected is None)


def test_the_machine_while_it_ran() -> None:
    facts: list[AnyFact] = [*stories.session_facts(), stories.submitted(1000)]
    facts += [
        Sample(at_ns=ms(1100), probe="cpu", took_ns=1, values={"all_share": 0.5}),
        Sample(at_ns=ms(1200), probe="cpu", took_ns=1, values={"all_share": 1.0}),
        Sample(at_ns=ms(1300), probe="cpu", took_ns=1, values={"all_share": 0.75}),
    ]
    written = contract(fold_all(facts), 1)
    assert written["machine"] == {
        "major_faults": None,
        "cpu": {"all_share": {"last": 0.75, "mean": 0.75, "max": 1.0}},
        **NOT_SAMPLED,
    }
    assert written["missing"]["machine.major_faults"] == "not yet"


def test_page_faults_are_unknown_when_any_chunk_did_not_tell_them() -> None:
    facts = [replace(fact, major_faults=None) if fact.at_ns == ms(2003) else fact for fact in stories.prompt_facts()]
    written = contract(fold_all([*stories.session_facts(), *facts]), 1)
    assert written["machine"] == {"major_faults": None, **NOT_SAMPLED}
    assert written["missing"]["machine.major_faults"] == "the engine did not say"


def test_an_unknown_answer_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        contract(SessionState(), 1)


def test_a_failure_without_any_answer() -> None:
    written = failure_contract(Fault(code="no_model", message="there is no model 'x'"))
    assert_well_formed(written)
    assert (written["finish_reason"], written["answer_id"], written["answer"]) == ("error", None, "")
    assert written["error"] == {"code": "no_model", "message": "there is no model 'x'"}
    assert set(written["missing"].values()) == {"there was no answer"}


def test_a_failure_with_what_is_known() -> None:
    written = failure_contract(
        Fault(code="cancelled", message="stopped"),
        fold_all(stories.session_facts()),
        started_at="2026-11-29T21:04:05.123+01:00",
        sampler=Sampler(temperature=0.5, seed=3),
    )
    assert_well_formed(written)
    assert (written["session"], written["started_at"]) == ("s-1", "2026-11-29T21:04:05.123+01:00")
    assert (written["finish_reason"], written["sampler"]["seed"]) == ("cancelled", 3)
    assert written["engine"]["backend"] == "llama.cpp"
    assert set(written["phases_ms"].values()) == {None}
