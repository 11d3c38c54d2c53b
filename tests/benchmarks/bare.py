"""The ceiling: the least that a Python program on llama.cpp can do, sharing no code with homeai's loop."""

from __future__ import annotations

import ctypes
import time
from dataclasses import dataclass
from typing import Any

import llama_cpp.llama_cpp

api: Any = llama_cpp.llama_cpp

# The library keeps only its address, for as long as the process lives.
_silence = api.llama_log_callback(lambda *_: None)


@dataclass(frozen=True)
class BareTimes:
    """Seconds, and the tokens that came out."""

    prefill_s: float
    decode_s: float
    ids: tuple[int, ...]

    @property
    def decode_tps(self) -> float:
        return (len(self.ids) - 1) / self.decode_s


class BareLoop:
    """Model, context, greedy sampler; prompts in chunks of one micro-batch."""

    def __init__(self, path: str, *, context: int, threads: int, ubatch: int = 512) -> None:
        api.llama_log_set(_silence, ctypes.c_void_p(0))
        api.llama_backend_init()
        self.model = api.llama_model_load_from_file(path.encode(), api.llama_model_default_params())
        self.vocab = api.llama_model_get_vocab(self.model)
        params = api.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = context, max(ubatch, 512), ubatch
        params.n_threads = params.n_threads_batch = threads
        self.ctx = api.llama_init_from_model(self.model, params)
        self.ubatch = ubatch
        self.batch = api.llama_batch_init(ubatch, 0, 1)

    def tokenise(self, text: str) -> list[int]:
        raw = text.encode()
        room = (api.llama_token * (len(raw) + 8))()
        count = api.llama_tokenize(self.vocab, raw, len(raw), room, len(room), False, True)
        return list(room[:count])

    def piece(self, token: int) -> bytes:
        buffer = ctypes.create_string_buffer(64)
        return buffer.raw[: api.llama_token_to_piece(self.vocab, token, buffer, 64, 0, False)]

    def _decode(self, ids: list[int], position: int, *, logits: bool) -> None:
        batch = self.batch
        for row, token in enumerate(ids):
            batch.token[row] = token
            batch.pos[row] = position + row
            batch.n_seq_id[row] = 1
            batch.seq_id[row][0] = 0
            batch.logits[row] = 0
        batch.logits[len(ids) - 1] = logits
        batch.n_tokens = len(ids)
        assert api.llama_decode(self.ctx, batch) == 0
        api.llama_synchronize(self.ctx)

    def run(self, prompt: list[int], tokens: int) -> BareTimes:
        """Read the prompt and write `tokens` greedily, detokenising each; the cache is empty before."""
        api.llama_memory_clear(api.llama_get_memory(self.ctx), True)
        sampler = api.llama_sampler_init_greedy()
        buffer = ctypes.create_string_buffer(64)
        began = time.perf_counter()
        for first in range(0, len(prompt), self.ubatch):
            chunk = prompt[first : first + self.ubatch]
            self._decode(chunk, first, logits=first + len(chunk) == len(prompt))
        prefilled = time.perf_counter()
        ids = [api.llama_sampler_sample(sampler, self.ctx, -1)]
        first_sampled = time.perf_counter()
        while len(ids) < tokens:
            api.llama_token_to_piece(self.vocab, ids[-1], buffer, 64, 0, False)
            self._decode([ids[-1]], len(prompt) + len(ids) - 1, logits=True)
            ids.append(api.llama_sampler_sample(sampler, self.ctx, -1))
        done = time.perf_counter()
        api.llama_sampler_free(sampler)
        return BareTimes(prefilled - began, done - first_sampled, tuple(ids))

    def close(self) -> None:
        api.llama_batch_free(self.batch)
        api.llama_free(self.ctx)
        api.llama_model_free(self.model)
