"""Models of any width, depth, vocabulary and number type, with weights of next to nothing: for what takes memory."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

from tests.models import tiny


def write_shape(
    path: Path,
    *,
    kind: str = "F16",
    width: int = 512,
    widest: int = 2048,
    heads: int = 8,
    kv_heads: int = 2,
    layers: int = 4,
    vocabulary: int = 400,
    tied: bool = False,
) -> Path:
    """Write a model that llama.cpp loads, and return its path; `kind` is ggml's name of the weights' type."""
    base, merges = tiny.byte_level_tokens()
    tokens = base + [f"<x{number}>" for number in range(vocabulary - len(base))]
    writer = gguf.GGUFWriter(path, "llama")
    numbers = {
        "block_count": layers,
        "context_length": 1 << 20,
        "embedding_length": width,
        "feed_forward_length": widest,
        "attention.head_count": heads,
        "attention.head_count_kv": kv_heads,
        "rope.dimension_count": width // heads,
        "vocab_size": len(tokens),
    }
    for key, number in numbers.items():
        writer.add_uint32(f"llama.{key}", number)
    writer.add_float32("llama.attention.layer_norm_rms_epsilon", 1e-5)
    writer.add_string("tokenizer.ggml.model", "gpt2")
    writer.add_string("tokenizer.ggml.pre", "gpt-2")
    writer.add_array("tokenizer.ggml.tokens", tokens)
    special = set(tiny.CONTROL)
    control, normal = int(gguf.TokenType.CONTROL), int(gguf.TokenType.NORMAL)
    writer.add_array("tokenizer.ggml.token_type", [control if token in special else normal for token in tokens])
    writer.add_array("tokenizer.ggml.merges", list(merges))
    writer.add_uint32("tokenizer.ggml.bos_token_id", tokens.index("<s>"))
    writer.add_uint32("tokenizer.ggml.eos_token_id", tokens.index("<|im_end|>"))
    writer.add_string("tokenizer.chat_template", tiny.CHATML)
    number_type = getattr(gguf.GGMLQuantizationType, kind)

    def add(name: str, rows: int, columns: int) -> None:
        weights = np.zeros((rows, columns), np.float32)
        weights[:, 0] = 0.01
        writer.add_tensor(name, gguf.quants.quantize(weights, number_type), raw_dtype=number_type)

    def norm(name: str) -> None:
        writer.add_tensor(name, np.ones(width, np.float32))

    add("token_embd.weight", len(tokens), width)
    if not tied:
        add("output.weight", len(tokens), width)
    norm("output_norm.weight")
    for layer in range(layers):
        block, kv_width = f"blk.{layer}.", kv_heads * (width // heads)
        norm(f"{block}attn_norm.weight")
        norm(f"{block}ffn_norm.weight")
        add(f"{block}attn_q.weight", width, width)
        add(f"{block}attn_k.weight", kv_width, width)
        add(f"{block}attn_v.weight", kv_width, width)
        add(f"{block}attn_output.weight", width, width)
        add(f"{block}ffn_gate.weight", widest, width)
        add(f"{block}ffn_up.weight", widest, width)
        add(f"{block}ffn_down.weight", width, widest)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
