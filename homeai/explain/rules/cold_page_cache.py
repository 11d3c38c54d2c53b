"""The model's file was not in the system's file cache, so it came from the disk."""

from __future__ import annotations

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding, Term
from homeai.explain.rules import Rule
from homeai.units import percent, size, span

LEAST_NS = 20_000_000
WARM = 0.98
"""From this share in the cache on the disk has no part in it."""


def disk_ns(context: AnswerContext) -> int | None:
    """How long this answer waited for the disk: the reading of the file, by how much of it was not in the cache."""
    load, paid_ns = context.load, context.span_ns("load")
    if load is None or not paid_ns or load.ended.cached_fraction is None or load.ended.cached_fraction >= WARM:
        return None
    whole_ns = load.total_ns or load.ended.file_ns + load.ended.context_ns + load.ended.warmup_ns
    share = min(1.0, paid_ns / whole_ns) if whole_ns > 0 else 0.0
    found_ns = round(load.ended.file_ns * (1 - load.ended.cached_fraction) * share)
    return found_ns if found_ns >= LEAST_NS else None


def _find(context: AnswerContext) -> Finding | None:
    cost_ns, load = disk_ns(context), context.load
    if cost_ns is None or load is None or load.ended.cached_fraction is None:
        return None
    missing = 1 - load.ended.cached_fraction
    read_bytes = load.ended.model.size_bytes * missing
    per_second = read_bytes * 1e9 / (load.ended.file_ns * missing)
    return Finding(
        id="cold_page_cache",
        subject="wait",
        kind="explanation",
        confidence="high" if load.ended.page_cache == "cold" else "medium",
        cost_ns=cost_ns,
        brief="reading the model from the disk",
        nutshell="the model from the disk",
        words=(
            f"{percent(missing)} of the model's file was not in memory from an earlier run and came from the disk: "
            f"{size(read_bytes)} at {size(per_second)} a second, {span(cost_ns)} of the wait."
        ),
        terms=(
            Term("read from the disk", read_bytes, "bytes"),
            Term("disk speed", per_second, "bytes/s"),
            Term("reading", cost_ns, "ns", cost_ns),
        ),
        try_this="While the system keeps the file in its cache, the next load is several times faster.",
    )


RULE = Rule("cold_page_cache", "wait", "The model's file had to be read from the disk, not from memory.", _find)
