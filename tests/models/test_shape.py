"""Model shapes: the bytes and operations of real models by their published figures, and of files written here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from homeai.events import Attention
from homeai.metrics.roofline import flops_per_token, kv_bytes, kv_bytes_per_token
from homeai.models.gguf import Header, Tensor
from homeai.models.shape import read_shape, shape_of
from tests.engine.rig import starter
from tests.models.tiny import write_chat_model, write_gguf

F16, Q4_0, Q8_0, F32 = 1, 2, 8, 0


def header(arch: str, tensors: Sequence[tuple[str, tuple[int, ...], int]] = (), **values: Any) -> Header:
    keys = {f"{arch}.{name.replace('__', '.')}": value for name, value in values.items()}
    return Header(
        version=3,
        values={"general.architecture": arch, **keys},
        tensors=tuple(Tensor(name, shape, kind, 0) for name, shape, kind in tensors),
        alignment=32,
        data_start=0,
    )


def dense(arch: str, layers: int, width: int, heads: int, kv_heads: int | tuple[int, ...], **more: Any) -> Header:
    return header(
        arch,
        block_count=layers,
        embedding_length=width,
        attention__head_count=heads,
        attention__head_count_kv=kv_heads,
        **more,
    )


@pytest.mark.parametrize(
    ("of", "kv_type", "expected"),
    [
        (dense("llama", 32, 4096, 32, 32), "f16", 524_288),
        (dense("llama", 32, 4096, 32, 8), "f16", 131_072),
        (dense("llama", 32, 4096, 32, 8), "q8_0", 69_632),
        (dense("qwen2", 28, 3584, 28, 4), "f16", 57_344),
    ],
    ids=["Llama-2-7B", "Llama-3.1-8B", "Llama-3.1-8B q8_0", "Qwen2.5-7B"],
)
def test_the_cache_of_known_models(of: Header, kv_type: str, expected: int) -> None:
    shape = shape_of([of])
    assert shape is not None
    assert kv_bytes_per_token(shape, kv_type, kv_type) == expected


def test_the_starter_model_reads_all_but_nothing_twice() -> None:
    shape = read_shape([starter()])
    assert shape is not None
    # The embedding is the output head as well, so it is read once for each token.
    assert shape.weight_bytes == 96_576_768
    assert shape.head_params == 49_152 * 576
    assert shape.body_params == 30 * (2 * 576 * 576 + 2 * 192 * 576 + 3 * 1536 * 576)
    assert shape.attention == (Attention(layers=30, heads=9, kv_heads=3, key_length=64, value_length=64),)
    assert kv_bytes_per_token(shape, "f16", "f16") == 23_040


def test_an_embedding_of_its_own_is_not_read() -> None:
    tensors = [("token_embd.weight", (64, 100), F16), ("blk.0.ffn_up.weight", (64, 128), F16)]
    tied, untied = (
        shape_of([header("llama", more, block_count=1)])
        for more in (tensors, [*tensors, ("output.weight", (64, 100), Q8_0)])
    )
    assert tied is not None
    assert untied is not None
    assert tied.weight_bytes == 2 * (6400 + 8192)
    assert untied.weight_bytes == 2 * 8192 + 6400 // 32 * 34
    assert tied.body_params == untied.body_params == 8192
    assert tied.head_params == untied.head_params == 6400


def test_of_experts_those_that_are_used_count() -> None:
    tensors = [
        ("blk.0.ffn_gate_exps.weight", (64, 32, 8), Q4_0),
        ("blk.0.ffn_gate_inp.weight", (64, 8), F32),
        ("blk.0.ffn_gate_shexp.weight", (64, 32), Q4_0),
        ("output.weight", (64, 10), F16),
    ]
    shape = shape_of([header("qwen2moe", tensors, block_count=1, expert_count=8, expert_used_count=2)])
    assert shape is not None
    expert = 64 * 32 * 18 // 32
    assert shape.weight_bytes == 2 * expert + 64 * 8 * 4 + expert + 64 * 10 * 2
    assert shape.body_params == 2 * 2048 + 512 + 2048
    assert (shape.experts, shape.experts_used) == (8, 2)


def test_experts_in_files_of_their_own_count_alike() -> None:
    tensors = [(f"blk.0.ffn_up.{expert}.weight", (64, 32), Q4_0) for expert in range(8)]
    shape = shape_of([header("llama", tensors, block_count=1, expert_count=8, expert_used_count=2)])
    assert shape is not None
    assert shape.weight_bytes == 2 * 64 * 32 * 18 // 32


@pytest.mark.parametrize(
    ("arch", "layers", "whole"), [("gemma2", 4, {1, 3}), ("gemma3", 12, {5, 11}), ("smallthinker", 8, {0, 4})]
)
def test_windows_by_architecture(arch: str, layers: int, whole: set[int]) -> None:
    shape = shape_of([dense(arch, layers, 256, 4, 4, attention__sliding_window=512)])
    assert shape is not None
    assert shape.attention is not None
    assert {each.window: each.layers for each in shape.attention} == {512: layers - len(whole), None: len(whole)}
    per_layer = 2 * 256 * 2
    assert kv_bytes(shape, 2048, "f16", "f16") == per_layer * ((layers - len(whole)) * 512 + len(whole) * 2048)
    assert kv_bytes(shape, 100, "f16", "f16") == per_layer * layers * 100


def test_a_pattern_in_the_file_wins_and_an_unused_window_is_none() -> None:
    listed = dense(
        "gpt-oss", 3, 128, 2, 2, attention__sliding_window=128, attention__sliding_window_pattern=(True, True, False)
    )
    unused = dense("llama", 3, 128, 2, 2, attention__sliding_window=4096)
    assert {each.window: each.layers for each in _attention(listed)} == {128: 2, None: 1}
    assert {each.window: each.layers for each in _attention(unused)} == {None: 3}


def test_layers_with_a_window_may_have_heads_of_another_size() -> None:
    """As in Gemma 4: every sixth layer looks back all the way, with 4 heads of 512; the others have 16 of 256."""
    of = dense(
        "gemma4",
        6,
        2816,
        16,
        (16, 16, 16, 16, 16, 4),
        attention__sliding_window=1024,
        attention__sliding_window_pattern=(True, True, True, True, True, False),
        attention__key_length=512,
        attention__value_length=512,
        attention__key_length_swa=256,
        attention__value_length_swa=256,
    )
    assert _attention(of) == (
        Attention(layers=5, heads=16, kv_heads=16, key_length=256, value_length=256, window=1024),
        Attention(layers=1, heads=16, kv_heads=4, key_length=512, value_length=512),
    )
    shape = shape_of([of])
    assert shape is not None
    assert kv_bytes(shape, 4096, "f16", "f16") == 5 * 1024 * 16 * 2 * 256 * 2 + 4096 * 4 * 2 * 512 * 2


def _attention(of: Header) -> tuple[Attention, ...]:
    shape = shape_of([of])
    assert shape is not None
    assert shape.attention is not None
    return shape.attention


def test_layers_that_differ_are_counted_apart() -> None:
    mixed = header(
        "llama",
        block_count=4,
        embedding_length=256,
        attention__head_count=4,
        attention__head_count_kv=(2, 2, 1, 0),
    )
    assert [(each.layers, each.kv_heads) for each in _attention(mixed)] == [(2, 2), (1, 1)]
    hybrid = dense("qwen3next", 8, 256, 4, 2, full_attention_interval=4)
    assert [each.layers for each in _attention(hybrid)] == [2]


def test_latent_attention_and_none_at_all_are_told_apart() -> None:
    latent = shape_of([dense("deepseek2", 2, 256, 4, 4, attention__kv_lora_rank=512)])
    recurrent = shape_of([header("mamba", block_count=2, embedding_length=256)])
    assert latent is not None
    assert recurrent is not None
    assert latent.attention is None
    assert kv_bytes_per_token(latent, "f16", "f16") is None
    assert recurrent.attention == ()
    assert kv_bytes_per_token(recurrent, "f16", "f16") == 0


def test_layers_that_predict_further_tokens_are_not_run() -> None:
    tensors = [("blk.0.ffn_up.weight", (64, 64), F16), ("blk.1.ffn_up.weight", (64, 64), F16)]
    shape = shape_of([header("glm4moe", tensors, block_count=2, nextn_predict_layers=1)])
    assert shape is not None
    assert shape.weight_bytes == 64 * 64 * 2


def test_the_arithmetic_of_a_prompt_token() -> None:
    shape = shape_of([dense("llama", 32, 4096, 32, 8)])
    assert shape is not None
    # Without weights here: 4 x heads x head size x context in each layer.
    assert flops_per_token(shape, 100) == 4 * 32 * 32 * 128 * 100


def test_an_unknown_type_or_a_damaged_file_has_no_shape(tmp_path: Path) -> None:
    assert shape_of([header("llama", [("output.weight", (64, 64), 4)], block_count=1)]) is None
    (tmp_path / "x.gguf").write_bytes(b"GGUF\x03")
    assert read_shape([tmp_path / "x.gguf"]) is None
    assert read_shape([tmp_path / "none.gguf"]) is None


def test_shards_are_added_up(tmp_path: Path) -> None:
    whole = read_shape([write_chat_model(tmp_path / "whole.gguf")])
    write_chat_model(tmp_path / "cut.gguf", tensors_per_shard=8)
    shards = sorted(tmp_path.glob("cut-*.gguf"))
    assert len(shards) > 1
    assert read_shape(shards) == whole
    assert whole is not None
    assert whole.weight_bytes == sum(
        tensor.nbytes for name, tensor in _arrays(tmp_path / "whole.gguf").items() if name != "token_embd.weight"
    )


def _arrays(path: Path) -> dict[str, Any]:
    import gguf

    return {tensor.name: tensor.data for tensor in gguf.GGUFReader(path).tensors}


def test_a_written_file_says_what_its_header_says(tmp_path: Path) -> None:
    path = write_gguf(
        tmp_path / "w.gguf",
        "llama",
        {"llama.block_count": 1, "llama.embedding_length": 64, "llama.attention.head_count": 2},
        {"output.weight": np.zeros((10, 64), np.float16), "blk.0.ffn_up.weight": np.zeros((64, 64), np.float32)},
    )
    shape = read_shape([path])
    assert shape is not None
    assert shape.weight_bytes == 10 * 64 * 2 + 64 * 64 * 4
    assert shape.attention == (Attention(layers=1, heads=2, kv_heads=2, key_length=32, value_length=32),)
