"""Computations timed for themselves: what this machine needs for u tokens at once behind a context of so many."""

from __future__ import annotations

from time import process_time_ns

from homeai.clock import now_ns
from homeai.engine.llamacpp.native import DECODED, Context, Run
from homeai.engine.wire import Measure

_STRIDE = 7919
"""A prime: tokens all over the vocabulary, so that experts and embeddings are used as a text uses them."""


def took_ns(context: Context, vocabulary: int, request: Measure) -> tuple[tuple[int, ...], int]:
    """Return how long each repeat took, from the call to its synchronised end; none where it does not fit.

    Beside that: the processor time that all threads of this process used in them, in nanoseconds.

    The cache must hold nothing, or what the last of these left there; the caller empties it.
    """
    if request.tokens < 1 or request.tokens > context.batch_size or request.depth + request.tokens > context.size:
        return (), 0
    context.clear_abort()
    ids = [(index * _STRIDE + 13) % vocabulary for index in range(request.depth + request.tokens)]
    spans_ns: list[int] = []
    cpu_ns = 0
    for _ in range(request.repeats):
        # What recurrent models cannot drop is read anew.
        if not context.keep(0, request.depth) or context.length(0) != request.depth:
            context.keep(0, 0)
            if not _fill(context, ids[: request.depth]):
                break
        context.fill([Run(0, request.depth, ids[request.depth :], True)])
        began_ns, began_cpu_ns = now_ns(), process_time_ns()
        outcome = context.decode()
        context.synchronise()
        if outcome != DECODED:
            break
        spans_ns.append(now_ns() - began_ns)
        cpu_ns += process_time_ns() - began_cpu_ns
    return tuple(spans_ns), cpu_ns


def _fill(context: Context, ids: list[int]) -> bool:
    for start in range(0, len(ids), context.ubatch_size):
        context.fill([Run(0, start, ids[start : start + context.ubatch_size], False)])
        if context.decode() != DECODED:
            return False
        context.synchronise()
    return True
