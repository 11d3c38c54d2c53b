"""Tries one rule on a hand-made session, and the parts such sessions share."""

from __future__ import annotations

from typing import Any

from homeai.events import Ceilings, Device, Divergence, Fault, ModelShape
from homeai.explain.finding import Finding
from homeai.explain.rules import rules
from tests.explain.scenes import engine, scene


def find(rule: str, **changes: Any) -> Finding | None:
    return rules()[rule].find(scene(**changes))


def found(rule: str, **changes: Any) -> Finding:
    finding = find(rule, **changes)
    assert finding is not None
    return finding


GPU = (Device(name="CUDA0", type="gpu", description="RTX 3090"),)
LOST = Divergence(at=100, held=900, message=1, role="user", why="edited")
NO_ROOM = Fault(code="context_full", message="too long")
HUGE_CARD = Ceilings(read_bytes_per_s=1008e9)
SEVEN_B = ModelShape(weight_bytes=3_782_000_000, body_params=6_600_000_000, head_params=131_072_000, attention=())
CARD = engine(layers_offloaded=33, layers_total=33)
