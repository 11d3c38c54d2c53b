"""Tiny GGUF files for tests: real models that llama.cpp loads and decodes in milliseconds, and headers of any kind.

`write_chat_model` writes a working llama model of about 0.5 MB. Its vocabulary is the 256 bytes, some merges and the
control tokens, so it reads any text. What it says is up to the test:

- by default the weights are random: the next token depends on all of the context, the text is printable ASCII, and it
  never ends by itself (greedy decoding of one file always gives the same tokens);
- with `says` the weights are made so that the model says exactly these tokens, one after the other, whatever the
  prompt was, and then ends. Pieces may be bytes that are no whole characters.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CONTROL = ("<s>", "</s>", "<|im_start|>", "<|im_end|>")
_MERGES = ("t h", "th e", "i n", "e r", "a n", "an d", "Ġ the", "Ġ a", "Ġ and", "l l", "o u", "ou r")
_HEADS, _KV_HEADS, _HEAD_SIZE = 2, 1, 32  # 32 is the block of q8_0 and q4_0, so that quantised KV types work too

Array = np.ndarray[Any, Any]
Value = bool | int | float | str | Sequence[int] | Sequence[float] | Sequence[str]


def write_chat_model(
    path: Path,
    *,
    template: str | None = CHATML,
    name: str = "Tiny",
    arch: str = "llama",
    says: Sequence[str | bytes] | None = None,
    ends: bool = True,
    control: Sequence[str] = (),
    eos: str = "<|im_end|>",
    add_bos: bool = False,
    context: int = 4096,
    layers: int = 2,
    seed: int = 0,
    metadata: Mapping[str, Value] | None = None,
    tensors_per_shard: int = 0,
) -> Path:
    """Write a small model that llama.cpp really loads, and return its path (the first shard's, if it is split).

    Args:
        path: Where to write. Shards are named `<stem>-00001-of-0000N.gguf` beside it.
        template: The Jinja chat template as it goes into the header, good or broken; None leaves it out.
        name: `general.name`.
        arch: `general.architecture`. Only `llama` is known to load; others are for header tests.
        says: Pieces of text, one a token, that the model says after any prompt. All different, and none of them the
            last token of the prompt (the model goes by the last token only). None gives random weights.
        ends: After the last of `says`: True samples `eos`, False starts `says` again, for ever.
        control: Control tokens beside `CONTROL` (`<think>`, `[INST]`, ...).
        eos: Which control token ends an answer.
        add_bos: `tokenizer.ggml.add_bos_token`; the BOS is `<s>`.
        context: Trained context in tokens.
        layers: Blocks; each costs about 0.1 MB.
        seed: Of the random weights.
        metadata: More keys, or other values for the keys that are written anyway.
        tensors_per_shard: Split into files of so many tensors; 0 writes one file.
    """
    control = (*CONTROL, *control)
    pieces = [_spell(piece) for piece in says or ()]
    if len(set(pieces)) != len(pieces):
        raise ValueError("a scripted model cannot say the same token twice: it goes by the last token only")
    tokens = list(dict.fromkeys((*control, *_BYTE_SPELLING, *(pair.replace(" ", "") for pair in _MERGES), *pieces)))
    ids = {token: index for index, token in enumerate(tokens)}
    tensors = (
        _scripted([ids[piece] for piece in pieces], ids[eos] if ends else None, len(tokens), layers)
        if pieces
        else _random(tokens, set(control), layers, seed)
    )
    width = tensors["token_embd.weight"].shape[1]
    header: dict[str, Value] = {
        "general.type": "model",
        "general.name": name,
        "general.file_type": int(gguf.LlamaFileType.ALL_F32),
        f"{arch}.block_count": layers,
        f"{arch}.context_length": context,
        f"{arch}.embedding_length": width,
        f"{arch}.feed_forward_length": 2 * width,
        f"{arch}.attention.head_count": width // _HEAD_SIZE,
        f"{arch}.attention.head_count_kv": _KV_HEADS,
        f"{arch}.attention.layer_norm_rms_epsilon": 1e-5,
        f"{arch}.rope.dimension_count": _HEAD_SIZE,
        f"{arch}.vocab_size": len(tokens),
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [
            int(gguf.TokenType.CONTROL if token in control else gguf.TokenType.NORMAL) for token in tokens
        ],
        "tokenizer.ggml.merges": _MERGES,
        "tokenizer.ggml.bos_token_id": ids["<s>"],
        "tokenizer.ggml.eos_token_id": ids[eos],
        "tokenizer.ggml.add_bos_token": add_bos,
    }
    if template is not None:
        header["tokenizer.chat_template"] = template
    return write_gguf(path, arch, {**header, **(metadata or {})}, tensors, tensors_per_shard=tensors_per_shard)


def byte_level_tokens() -> tuple[list[str], tuple[str, ...]]:
    """The vocabulary of the tiny models, without anything special to one of them, and its merges."""
    return list(dict.fromkeys((*CONTROL, *_BYTE_SPELLING, *(pair.replace(" ", "") for pair in _MERGES)))), _MERGES


def write_gguf(
    path: Path,
    arch: str,
    metadata: Mapping[str, Value],
    tensors: Mapping[str, Array] | None = None,
    *,
    tensors_per_shard: int = 0,
    endianess: gguf.GGUFEndian = gguf.GGUFEndian.LITTLE,
) -> Path:
    """Write a GGUF file with these keys and tensors (numpy shapes: the last is the row), and return its path.

    Integers are written as uint32, as llama.cpp expects; other widths go in through `gguf.GGUFWriter` itself.
    """
    writer = gguf.GGUFWriter(path, arch, endianess=endianess, split_max_tensors=tensors_per_shard)
    for key, value in metadata.items():
        match value:
            case bool():
                writer.add_bool(key, value)
            case int():
                writer.add_uint32(key, value)
            case float():
                writer.add_float32(key, value)
            case str():
                writer.add_string(key, value)
            case _:
                writer.add_array(key, list(value))
    for name, array in (tensors or {}).items():
        writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    if len(writer.tensors) == 1:
        return path
    return path.with_name(f"{path.stem}-00001-of-{len(writer.tensors):05d}.gguf")


def _byte_spelling() -> tuple[str, ...]:
    """The characters that byte-level BPE writes the bytes 0..255 with: printable ones stand for themselves."""
    themselves = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return tuple(chr(byte) if byte in themselves else chr(next(others)) for byte in range(256))


_BYTE_SPELLING = _byte_spelling()


def _spell(piece: str | bytes) -> str:
    if isinstance(piece, str) and piece.startswith("<") and piece.endswith(">"):
        return piece  # the spelling of a control token is its text; all of it is ASCII, so others come out the same
    text = piece.encode() if isinstance(piece, str) else piece
    return "".join(_BYTE_SPELLING[byte] for byte in text)


def _random(tokens: Sequence[str], silent: set[str], layers: int, seed: int) -> dict[str, Array]:
    width = _HEADS * _HEAD_SIZE

    def weights(name: str, rows: int, columns: int, scale: float) -> Array:
        # Each tensor has its own stream, so that a change of one shape does not change all that follow.
        source = np.random.default_rng((seed, zlib.crc32(name.encode())))
        return np.asarray(source.standard_normal((rows, columns)) * scale / np.sqrt(columns), np.float32)

    # Sharp attention and strong values: with plain scales greedy decoding falls into one token within five steps.
    strength = {"attn_q": 3.0, "attn_k": 3.0, "attn_v": 4.0, "attn_output": 4.0}

    def block(name: str, rows: int, columns: int) -> Array:
        return weights(name, rows, columns, strength.get(name.split(".")[2], 2.0))

    # Logits spread by about 6: greedy choices have margins well above the noise of another batch size.
    output = weights("output.weight", len(tokens), width, 6.0)
    for index, token in enumerate(tokens):
        if token in silent or not token.replace(_BYTE_SPELLING[0x20], "").isascii():
            output[index] = 0.0
    embedding = weights("token_embd.weight", len(tokens), width, float(np.sqrt(width)))
    return {**_blocks(width, layers, block), "token_embd.weight": embedding, "output.weight": output}


def _scripted(script: Sequence[int], eos: int | None, vocabulary: int, layers: int) -> dict[str, Array]:
    """A chain: each scripted token has a direction of its own, all other tokens share direction 0.

    The blocks add nothing, so the final norm gives sqrt(width) in one direction, and one row of the output answers it.
    """
    row = _HEADS * _HEAD_SIZE
    width = -(-(len(script) + 1) // row) * row
    embedding = np.zeros((vocabulary, width), np.float32)
    output = np.zeros((vocabulary, width), np.float32)
    embedding[:, 0] = 1.0
    successors = [*script, script[0] if eos is None else eos]
    for direction, token in enumerate(script, start=1):
        embedding[token] = 0.0
        embedding[token, direction] = 1.0
    for direction, successor in enumerate(successors):
        output[successor, direction] = 4.0
    tensors = _blocks(width, layers, lambda _name, *shape: np.zeros(shape, np.float32))
    return {**tensors, "token_embd.weight": embedding, "output.weight": output}


def _blocks(width: int, layers: int, weights: Callable[[str, int, int], Array]) -> dict[str, Array]:
    tensors: dict[str, Array] = {"output_norm.weight": np.ones(width, np.float32)}
    shapes = {
        "attn_q": (width, width),
        "attn_k": (_KV_HEADS * _HEAD_SIZE, width),
        "attn_v": (_KV_HEADS * _HEAD_SIZE, width),
        "attn_output": (width, width),
        "ffn_gate": (2 * width, width),
        "ffn_up": (2 * width, width),
        "ffn_down": (width, 2 * width),
    }
    for layer in range(layers):
        for part in ("attn_norm", "ffn_norm"):
            tensors[f"blk.{layer}.{part}.weight"] = np.ones(width, np.float32)
        for part, (rows, columns) in shapes.items():
            name = f"blk.{layer}.{part}.weight"
            tensors[name] = weights(name, rows, columns)
    return tensors
