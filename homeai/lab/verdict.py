"""What a calibration comes to, in words: what its figures say, or why it is not kept."""

from __future__ import annotations

from homeai.events import Ceilings, LoadEnded
from homeai.lab.calibrate import SIZES
from homeai.metrics.roofline import BANDWIDTH_BOUND, bandwidth_use, fit
from homeai.metrics.soundness import disturbances, is_sound
from homeai.units import count, percent, rate, size, span


def refused(found: Ceilings, kept: Ceilings | None = None) -> str:
    """Why a measurement is not kept, and what to do, in words; empty where it is.

    Args:
        found: What was measured.
        kept: An earlier measurement, which then stays.
    """
    reasons = disturbances(found)
    if not reasons:
        return ""
    stays = ""
    if kept is not None and is_sound(kept):
        stays = f" The one {f'of {kept.measured_at[:10]} ' if kept.measured_at else 'before '}stays in use."
    return (
        f"The machine was busy, so this measurement is not kept. {' '.join(reasons)}{stays} "
        "Close other programs and measure again."
    )


def left_out(found: Ceilings) -> str:
    """Which sizes there was no time for, as a sentence; empty where all were measured."""
    largest = max((step.tokens for step in found.steps if not step.depth), default=0)
    if not largest or largest >= SIZES[-1]:
        return ""
    return (
        f"No more than {count(largest)} tokens at once were measured: {count(SIZES[-1])} did not fit into the time or "
        "into the model's context. What long prompts take is reckoned from that."
    )


def meaning(found: Ceilings, loaded: LoadEnded) -> list[str]:
    """What the figures say, in plain words; of disturbed ones nothing that would hold at rest."""
    lines: list[str] = []
    if not is_sound(found):
        return lines
    form = fit(found.steps)
    if form is not None and form.form == "sum":
        lines.append(
            f"A computation takes about {span(form.fixed_ns)} however few tokens it has, and {span(form.per_token_ns)} "
            "more for each: here reading the weights and the arithmetic add up."
        )
    elif form is not None:
        lines.append(
            f"A computation takes at least {span(form.floor_ns)}, and {span(form.per_token_ns)} for each token where "
            "there are many: here the arithmetic of few tokens hides behind reading the weights."
        )
    if found.written_ns is not None:
        lines.append(
            f"An answer is written at {rate(1e9 / found.written_ns)}, {span(found.written_ns)} a token, behind "
            f"{count(found.written_depth)} tokens of context."
        )
    single = next((step.took_ns for step in found.steps if (step.tokens, step.depth) == (1, 0)), None)
    shape = loaded.model.shape
    if found.read_bytes_per_s and shape is not None and single:
        used = bandwidth_use(shape.weight_bytes, single, found.read_bytes_per_s)
        bound = "limits" if used > BANDWIDTH_BOUND else "does not limit"
        lines.append(
            f"Memory is read at {size(found.read_bytes_per_s)} a second; writing one token reads "
            f"{size(shape.weight_bytes)} and uses {percent(used)} of that: memory {bound} how fast this model writes."
        )
    if words := left_out(found):
        lines.append(words)
    return lines
