"""Choosing the next token: llama.cpp's own samplers, chained in the order that its tools use."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from homeai.engine.llamacpp.library import api
from homeai.engine.llamacpp.native import Context
from homeai.events import Sampler

PENALTY_WINDOW = 64
"""How many of the last tokens the repeat penalty looks at; llama.cpp's default."""


class TokenChooser:
    """A sampler chain for one answer."""

    def __init__(self, sampler: Sampler, prompt_ids: Sequence[int], vocabulary_size: int) -> None:
        greedy = sampler.temperature <= 0
        self.seed = None if greedy else secrets.randbits(32) if sampler.seed is None else sampler.seed & 0xFFFFFFFF
        """The seed in use; None when greedy, which needs none."""
        chain = api.llama_sampler_chain_init(api.llama_sampler_chain_default_params())
        self._chain = chain
        penalises = sampler.repeat_penalty != 1.0
        if penalises:
            penalties = api.llama_sampler_init_penalties(
                vocabulary_size, PENALTY_WINDOW, sampler.repeat_penalty, 0.0, 0.0
            )
            api.llama_sampler_chain_add(chain, penalties)
        if self.seed is None:
            api.llama_sampler_chain_add(chain, api.llama_sampler_init_greedy())
        else:
            if sampler.top_k > 0:
                api.llama_sampler_chain_add(chain, api.llama_sampler_init_top_k(sampler.top_k))
            if sampler.top_p < 1:
                api.llama_sampler_chain_add(chain, api.llama_sampler_init_top_p(sampler.top_p, 1))
            if sampler.min_p > 0:
                api.llama_sampler_chain_add(chain, api.llama_sampler_init_min_p(sampler.min_p, 1))
            api.llama_sampler_chain_add(chain, api.llama_sampler_init_temp(sampler.temperature))
            api.llama_sampler_chain_add(chain, api.llama_sampler_init_dist(self.seed))
        if penalises:
            for token in prompt_ids[-PENALTY_WINDOW:]:
                api.llama_sampler_accept(chain, token)

    def choose(self, context: Context, row: int) -> int:
        """Return the next token from the logits of a batch row; the chain has accepted it then."""
        return int(api.llama_sampler_sample(self._chain, context.pointer, row))

    def close(self) -> None:
        """Free the chain and its samplers."""
        if self._chain:
            api.llama_sampler_free(self._chain)
            self._chain = None
