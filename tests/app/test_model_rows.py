"""What a line of the list of models says of a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from homeai.app.model_rows import WHY, bare, fit, memory_bytes, row_of, short_path
from homeai.events import Device, EngineReady, Fault, Sample
from homeai.metrics.fold import fold_all
from homeai.metrics.state import SessionState
from homeai.models.judge import Kind
from tests.app.stage import MODEL
from tests.metrics import stories

GIB = 2**30


def memory(total: float) -> Sample:
    return Sample(at_ns=1, took_ns=1, probe="memory", values={"total_bytes": total})


def test_weights_fit_fill_or_exceed_the_memory() -> None:
    assert [fit(int(share * 100), 100) for share in (0.79, 0.8, 0.94, 0.95, 2)] == [
        "fits",
        "just fits",
        "just fits",
        "too large",
        "too large",
    ]
    assert fit(1, None) == ""


def test_the_memory_of_graphics_cards_counts_and_that_of_the_processor_not_twice() -> None:
    devices = (
        Device(name="CPU", type="cpu", total_bytes=24 * GIB),
        Device(name="GPU", type="gpu", total_bytes=8 * GIB),
    )
    ready = EngineReady(at_ns=1, generation=1, pid=1, backend="x", build="y", devices=devices)
    assert memory_bytes(SessionState()) is None
    assert memory_bytes(fold_all([stories.SESSION, ready, memory(24 * GIB)])) == 32 * GIB


def test_a_card_that_shares_the_machines_memory_adds_none() -> None:
    metal = Device(name="Metal", description="Apple M1 Pro", type="gpu", total_bytes=11 * GIB)
    ready = EngineReady(at_ns=1, generation=1, pid=1, backend="x", build="y", devices=(metal,))
    told = Sample(at_ns=1, took_ns=1, probe="apple", values={"gpu_0_percent": 1.0}, labels={"gpu_0_memory": "shared"})
    assert memory_bytes(fold_all([stories.SESSION, ready, memory(16 * GIB), told])) == 16 * GIB


def test_the_model_in_use_and_the_one_being_loaded_are_marked() -> None:
    tiny = replace(MODEL, path=Path("/models/tiny.gguf"))
    loaded = row_of(tiny, fold_all(stories.session_facts()))
    assert (loaded.current, loaded.note) == (True, "in use")
    loading = row_of(tiny, fold_all(stories.session_facts()[:-1]))
    assert (loading.current, loading.note) == (False, "loading")


@pytest.mark.parametrize("kind", [kind for kind in get_args(Kind) if kind != "chat"])
def test_every_kind_of_file_that_cannot_chat_has_words_that_fit_their_column(kind: Kind) -> None:
    refused = replace(MODEL, kind=kind, refusal=Fault(code="broken_model", message="No.", detail=kind))
    row = row_of(refused, SessionState())
    assert not row.usable
    assert 3 < len(row.note) <= 14
    assert row.note == WHY.get(kind, "not for chat")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [(" 'a b.gguf' ", "a b.gguf"), ('"x"', "x"), ("'", "'"), ("plain", "plain"), ("~x", "~x")],
)
def test_quotes_around_a_path_are_not_part_of_it(typed: str, meant: str) -> None:
    assert bare(typed) == meant


def test_the_home_folder_is_a_tilde_in_both_directions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert short_path(tmp_path / "models" / "a.gguf") == "~/models/a.gguf"
    assert bare("~/models/a.gguf") == f"{tmp_path}/models/a.gguf"
    assert short_path(Path("/elsewhere/\udcff.gguf")) == "/elsewhere/\ufffd.gguf"
