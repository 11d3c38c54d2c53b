"""A small recurrent (Mamba) model that llama.cpp really loads: one whose memory cannot be rolled back."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

from tests.models.tiny import CHATML, CONTROL, byte_level_tokens, write_gguf

WIDTH, LAYERS, STATE, RANK, CONV = 64, 2, 16, 4, 4
INNER = 2 * WIDTH


def write_recurrent_model(path: Path, *, context: int = 4096, seed: int = 0) -> Path:
    """Write the model with random weights; it writes for ever and says other things after other prompts."""
    tokens, merges = byte_level_tokens()
    ids = {token: index for index, token in enumerate(tokens)}
    random = np.random.default_rng(seed)

    def weights(*shape: int, scale: float = 1.0) -> np.ndarray:
        return np.asarray(random.standard_normal(shape) * scale, np.float32)

    output = weights(len(tokens), WIDTH, scale=0.8)
    for index, token in enumerate(tokens):
        if token in CONTROL or not token.replace("Ġ", "").isascii():
            output[index] = 0  # never said: the text stays plain ASCII
    tensors = {
        "token_embd.weight": weights(len(tokens), WIDTH),
        "output_norm.weight": np.ones(WIDTH, np.float32),
        "output.weight": output,
    }
    for layer in range(LAYERS):
        own = f"blk.{layer}."
        tensors |= {
            own + "attn_norm.weight": np.ones(WIDTH, np.float32),
            own + "ssm_in.weight": weights(2 * INNER, WIDTH, scale=2 / WIDTH**0.5),
            own + "ssm_conv1d.weight": weights(INNER, CONV, scale=0.7),
            own + "ssm_conv1d.bias": weights(INNER, scale=0.1),
            own + "ssm_x.weight": weights(RANK + 2 * STATE, INNER, scale=2 / INNER**0.5),
            own + "ssm_dt.weight": weights(INNER, RANK, scale=0.5),
            own + "ssm_dt.bias": weights(INNER, scale=0.1) - np.float32(2),
            # A slow decay, so that what was read long ago still matters.
            own + "ssm_a": -np.exp(weights(INNER, STATE, scale=0.5) - np.float32(7)),
            own + "ssm_d": np.ones(INNER, np.float32),
            own + "ssm_out.weight": weights(WIDTH, INNER, scale=2 / INNER**0.5),
        }
    kinds = [gguf.TokenType.CONTROL if token in CONTROL else gguf.TokenType.NORMAL for token in tokens]
    return write_gguf(
        path,
        "mamba",
        {
            "general.type": "model",
            "general.name": "Tiny recurrent",
            "general.file_type": 0,
            "mamba.block_count": LAYERS,
            "mamba.context_length": context,
            "mamba.embedding_length": WIDTH,
            "mamba.feed_forward_length": 0,
            "mamba.attention.head_count": 0,
            "mamba.attention.layer_norm_rms_epsilon": 1e-5,
            "mamba.ssm.conv_kernel": CONV,
            "mamba.ssm.inner_size": INNER,
            "mamba.ssm.state_size": STATE,
            "mamba.ssm.time_step_rank": RANK,
            "mamba.vocab_size": len(tokens),
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "gpt-2",
            "tokenizer.ggml.tokens": tokens,
            "tokenizer.ggml.token_type": [int(kind) for kind in kinds],
            "tokenizer.ggml.merges": merges,
            "tokenizer.ggml.bos_token_id": ids["<s>"],
            "tokenizer.ggml.eos_token_id": ids["<|im_end|>"],
            "tokenizer.ggml.add_bos_token": False,
            "tokenizer.chat_template": CHATML,
        },
        tensors,
    )
