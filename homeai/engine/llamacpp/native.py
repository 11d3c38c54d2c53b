"""Owners of llama.cpp's objects: model, vocabulary, context, batch. Each frees what it holds, once, in `close`."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from homeai.engine.llamacpp.library import api

DECODED, NO_SLOT, ABORTED = 0, 1, 2
"""What `Context.decode` returns; anything negative is an error of the engine."""

KV_TYPES = {
    "f32": 0,
    "f16": 1,
    "q4_0": 2,
    "q4_1": 3,
    "q5_0": 6,
    "q5_1": 7,
    "q8_0": 8,
    "iq4_nl": 20,
    "bf16": 30,
}
"""ggml's numbers for the cache types it accepts."""

_MARKER = api.LLAMA_TOKEN_ATTR_UNKNOWN | api.LLAMA_TOKEN_ATTR_CONTROL | api.LLAMA_TOKEN_ATTR_USER_DEFINED


class Vocabulary:
    """The model's tokeniser."""

    def __init__(self, pointer: Any) -> None:
        self._pointer = pointer
        self.size = int(api.llama_vocab_n_tokens(pointer))
        self.bos = _token(api.llama_vocab_bos(pointer))
        self.eos = _token(api.llama_vocab_eos(pointer))
        self.adds_bos = bool(api.llama_vocab_get_add_bos(pointer))
        self._ids = (api.llama_token * 1024)()
        self._bytes = ctypes.create_string_buffer(256)

    def tokenise(self, text: bytes, *, parse_special: bool) -> list[int]:
        """Return the ids of UTF-8 text, nothing added; control tokens are recognised only with `parse_special`."""
        while True:
            room = len(self._ids)
            found = api.llama_tokenize(self._pointer, text, len(text), self._ids, room, False, parse_special)
            if found >= 0:
                return self._ids[:found]  # type: ignore[no-any-return]
            # Too small: the library answers with minus the room it needs.
            self._ids = (api.llama_token * max(-found, 2 * room))()

    def piece(self, token: int, *, special: bool) -> bytes:
        """Return the bytes of one token; a control token is empty unless `special`."""
        while True:
            room = len(self._bytes)
            length = api.llama_token_to_piece(self._pointer, token, self._bytes, room, 0, special)
            if length >= 0:
                return self._bytes.raw[:length]
            self._bytes = ctypes.create_string_buffer(max(-length, 2 * room))

    def text(self, token: int | None) -> str:
        """The token's own spelling, `""` for none: what templates call `bos_token` and `eos_token`."""
        return "" if token is None else self.piece(token, special=True).decode("utf-8", "replace")

    def is_end(self, token: int) -> bool:
        """Whether this token ends the answer."""
        return bool(api.llama_vocab_is_eog(self._pointer, token))

    def is_marker(self, token: int) -> bool:
        """Whether its spelling is matched as a whole: a control, unknown or user-defined token."""
        return bool(api.llama_vocab_get_attr(self._pointer, token) & _MARKER)


def _token(number: int) -> int | None:
    return None if number < 0 else number


class Model:
    """A loaded model file."""

    def __init__(
        self, paths: Sequence[bytes], *, gpu_layers: int, on_progress: Callable[[float], None] | None = None
    ) -> None:
        """Load the file, or the shards in order.

        `on_progress` gets llama.cpp's own 0..1. Raises `OSError` when the library refuses; why, it only logs.
        """
        params = api.llama_model_default_params()
        params.n_gpu_layers = gpu_layers
        if gpu_layers == 0:
            # An empty list of devices. Otherwise a GPU would still be started, and given large batches to compute.
            self._no_devices = (ctypes.c_void_p * 1)(None)
            params.devices = ctypes.addressof(self._no_devices)

        @api.llama_progress_callback  # type: ignore[untyped-decorator]
        def progress(fraction: float, _: object) -> bool:
            if on_progress is not None:
                on_progress(fraction)
            return True

        params.progress_callback = progress
        if len(paths) == 1:
            pointer = api.llama_model_load_from_file(paths[0], params)
        else:
            array = (ctypes.c_char_p * len(paths))(*paths)
            pointer = api.llama_model_load_from_splits(array, len(paths), params)
        if not pointer:
            raise OSError("llama.cpp could not load the file")
        self._pointer = pointer
        self.vocabulary = Vocabulary(api.llama_model_get_vocab(pointer))
        self.params = int(api.llama_model_n_params(pointer))
        self.layers = int(api.llama_model_n_layer(pointer))
        self.context_trained = int(api.llama_model_n_ctx_train(pointer))
        # A recurrent state is a summary of everything read: its tail cannot be taken out again.
        self.rolls_back = not (api.llama_model_is_recurrent(pointer) or api.llama_model_is_hybrid(pointer))

    def metadata(self, key: str) -> str | None:
        """One value of the file's header as text, None when it has none."""
        room = 256
        while True:
            buffer = ctypes.create_string_buffer(room)
            length = api.llama_model_meta_val_str(self._pointer, key.encode(), buffer, room)
            if length < 0:
                return None
            if length < room:
                return buffer.value.decode("utf-8", "replace")
            room = length + 1

    @property
    def template(self) -> str | None:
        """The chat template that the file carries, as Jinja source."""
        source = api.llama_model_chat_template(self._pointer, None)
        return source.decode("utf-8", "replace") if source else None

    def close(self) -> None:
        """Free the weights."""
        if self._pointer:
            api.llama_model_free(self._pointer)
            self._pointer = None

    @property
    def pointer(self) -> Any:
        """The library's own handle."""
        return self._pointer


@dataclass(frozen=True, slots=True)
class Run:
    """Tokens of one sequence that follow each other in a batch; `logits` asks for the last one's."""

    sequence: int
    position: int
    ids: Sequence[int]
    logits: bool


class Context:
    """A model's working memory: KV cache, compute buffers, the batch that feeds them, and the switch that aborts it."""

    def __init__(
        self,
        model: Model,
        *,
        context: int,
        batch: int,
        ubatch: int,
        threads: int,
        threads_batch: int,
        flash_attention: bool | None,
        kv_type_k: str,
        kv_type_v: str,
        kv_offload: bool,
        sequences: int,
    ) -> None:
        """Raises `MemoryError` when the library refuses; why, it only logs."""
        params = api.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = context, batch, ubatch
        params.n_threads, params.n_threads_batch = threads, threads_batch
        params.flash_attn_type = -1 if flash_attention is None else int(flash_attention)
        params.type_k, params.type_v = KV_TYPES[kv_type_k], KV_TYPES[kv_type_v]
        params.offload_kqv = kv_offload
        params.n_seq_max = sequences
        # Without it an iteration of mixed sequences is cut into extra passes.
        params.kv_unified = True
        # A full-size cache for sliding-window models, so that their tail can be dropped and the prefix kept.
        params.swa_full = True
        params.no_perf = False
        # The abort callback is asked before every node of the graph. libc's strlen is one that never enters Python:
        # it answers 0 for a buffer that begins with a zero byte and non-zero once that byte is set.
        self._abort_byte = ctypes.create_string_buffer(2)
        runtime = ctypes.CDLL("msvcrt" if sys.platform == "win32" else None)
        self._abort_data = ctypes.cast(self._abort_byte, ctypes.c_void_p)
        self._quiet_abort = ctypes.cast(runtime.strlen, api.ggml_abort_callback)
        self._telling_abort = api.ggml_abort_callback(self._count_step)
        self._steps = 0
        self.graph_steps = 0
        """How often one computation asks whether to go on; known after the warm-up, 0 when nothing runs on the CPU."""
        self._on_steps: Callable[[int], None] | None = None
        params.abort_callback, params.abort_callback_data = self._quiet_abort, self._abort_data
        pointer = api.llama_init_from_model(model.pointer, params)
        if not pointer:
            raise MemoryError("llama.cpp could not create the context")
        self._pointer = pointer
        self._memory = api.llama_get_memory(pointer)
        self.size = int(api.llama_n_ctx(pointer))
        self.batch_size = int(api.llama_n_batch(pointer))
        self.ubatch_size = int(api.llama_n_ubatch(pointer))
        self._fill_arrays(self.batch_size)

    def _fill_arrays(self, rows: int) -> None:
        self._tokens = (ctypes.c_int32 * rows)()
        self._positions = (ctypes.c_int32 * rows)()
        self._counts = (ctypes.c_int32 * rows)(*([1] * rows))
        self._logits = (ctypes.c_int8 * rows)()
        # One sequence number a row, each behind a pointer: the pointers never change, the numbers do.
        self._sequences = (ctypes.c_int32 * rows)()
        pointers = (ctypes.POINTER(ctypes.c_int32) * rows)()
        start = ctypes.addressof(self._sequences)
        for row in range(rows):
            pointers[row] = ctypes.cast(start + row * 4, ctypes.POINTER(ctypes.c_int32))
        self._sequence_pointers = pointers
        batch = api.llama_batch()
        batch.token, batch.pos, batch.n_seq_id = self._tokens, self._positions, self._counts
        batch.seq_id, batch.logits = self._sequence_pointers, self._logits
        self._batch = batch

    def fill(self, runs: Sequence[Run]) -> list[int]:
        """Put the runs into the batch; return for each the row of its last token, where its logits will be."""
        row = 0
        last_rows = []
        for run in runs:
            count = len(run.ids)
            end = row + count
            if count == 1:
                self._tokens[row], self._positions[row] = run.ids[0], run.position
                self._sequences[row], self._logits[row] = run.sequence, run.logits
            else:
                self._tokens[row:end] = list(run.ids)
                self._positions[row:end] = list(range(run.position, run.position + count))
                self._sequences[row:end] = [run.sequence] * count
                ctypes.memset(ctypes.addressof(self._logits) + row, 0, count)
                self._logits[end - 1] = run.logits
            last_rows.append(end - 1)
            row = end
        self._batch.n_tokens = row
        return last_rows

    def decode(self) -> int:
        """Compute the batch: `DECODED`, `NO_SLOT`, `ABORTED` or a negative error. On a GPU it may still be running."""
        return int(api.llama_decode(self._pointer, self._batch))

    def decode_telling(self, on_steps: Callable[[int], None]) -> int:
        """Like `decode`, calling `on_steps` every few dozen steps with how many are done, of `graph_steps` (CPU only).

        It costs one entry into Python a step, 1 to 2 ms a micro-batch: for long ones only.
        """
        self._steps, self._on_steps = 0, on_steps
        api.llama_set_abort_callback(self._pointer, self._telling_abort, self._abort_data)
        try:
            return self.decode()
        finally:
            api.llama_set_abort_callback(self._pointer, self._quiet_abort, self._abort_data)

    def _count_step(self, _: object) -> bool:
        self._steps += 1
        if self._steps % 32 == 0 and self._on_steps is not None:
            self._on_steps(self._steps)
        return bool(self._abort_byte[0] != b"\0")

    def synchronise(self) -> None:
        """Wait until what `decode` started is done."""
        api.llama_synchronize(self._pointer)

    def abort(self) -> None:
        """Make the running decode return `ABORTED` at its next node (CPU only). Any thread may call this."""
        self._abort_byte[0] = b"\x01"

    def clear_abort(self) -> None:
        """Let decodes run again."""
        self._abort_byte[0] = b"\x00"

    def keep(self, sequence: int, tokens: int) -> bool:
        """Drop everything of a sequence behind its first `tokens`; False when this model cannot do that."""
        return bool(api.llama_memory_seq_rm(self._memory, sequence, tokens, -1))

    def length(self, sequence: int) -> int:
        """How many tokens of the sequence are in the cache."""
        return int(api.llama_memory_seq_pos_max(self._memory, sequence)) + 1

    def warm_up(self, token: int) -> None:
        """Run one token through all weights, so that the first answer does not pay for first touches."""
        api.llama_set_warmup(self._pointer, True)
        self.fill([Run(0, 0, [token], True)])
        self.decode_telling(lambda _: None)
        self.synchronise()
        self.graph_steps = self._steps
        api.llama_set_warmup(self._pointer, False)
        api.llama_memory_clear(self._memory, True)
        api.llama_perf_context_reset(self._pointer)

    def close(self) -> None:
        """Free the cache and the buffers."""
        if self._pointer:
            api.llama_free(self._pointer)
            self._pointer = None

    @property
    def pointer(self) -> Any:
        """The library's own handle."""
        return self._pointer
