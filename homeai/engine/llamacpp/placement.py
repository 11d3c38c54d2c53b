"""Where the model really went, read from what llama.cpp said while it loaded. Pure: lines in, facts out."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from homeai.events import Placement

_LAYER = re.compile(r"layer +(\d+) assigned to device ([^,\s]+)")
_BUFFER = re.compile(r"(\S+) +(model|KV|RS|compute|output) buffer size = +([\d.]+) MiB")
_FLASH = re.compile(r"Flash Attention (enabled|not supported)")
_FALLBACK = re.compile(r"is assigned to device \S+ but Flash Attention is assigned to device")
_SPLITS = re.compile(r"graph.*: nodes = [^,]+, splits = (?:\d+ / )?(\d+)")
"""Of two figures the second is that of a decode of one token."""

_MIB = 1024 * 1024

TELLING = ("assigned to device", "buffer size", "Flash Attention", ", splits = ")
"""What lines worth keeping contain: about 40 of the 2,500 that a load writes, found 20 times as fast as by pattern."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What one load put where; `layers_total` counts the blocks and the output layer, as llama.cpp does."""

    devices: tuple[Placement, ...]
    layers_offloaded: int | None
    layers_total: int | None
    flash_attention: bool | None
    attention_fell_back: bool = False
    graph_splits: int | None = None


def read_layout(lines: Iterable[str]) -> Layout:
    """Read the placement from the log lines of one model load and one context creation."""
    layer_device: dict[int, str] = {}
    sizes: dict[str, Counter[str]] = defaultdict(Counter)
    flash: bool | None = None
    fell_back, splits = False, None
    for line in lines:
        if found := _LAYER.search(line):
            layer_device[int(found[1])] = found[2]
        elif found := _BUFFER.search(line):
            sizes[_device_of(found[1])][found[2]] += round(float(found[3]) * _MIB)
        elif found := _FLASH.search(line):
            flash = found[1] == "enabled"
        elif _FALLBACK.search(line):
            fell_back = True
        elif found := _SPLITS.search(line):
            splits = int(found[1])
    # The last "layer" is the output head; a device's own count is of blocks only.
    output = max(layer_device, default=None)
    blocks = Counter(device for layer, device in layer_device.items() if layer != output)
    names = sorted({*blocks, *sizes}, key=lambda name: (name == "CPU", name))
    devices = tuple(
        Placement(
            name=name,
            layers=blocks[name],
            model_bytes=sizes[name]["model"] or None,
            kv_bytes=sizes[name]["KV"] + sizes[name]["RS"] or None,
            compute_bytes=sizes[name]["compute"] + sizes[name]["output"] or None,
        )
        for name in names
        if blocks[name] or any(sizes[name].values())
    )
    return Layout(
        devices=devices,
        layers_offloaded=sum(device != "CPU" for device in layer_device.values()) if layer_device else None,
        layers_total=len(layer_device) or None,
        flash_attention=flash,
        attention_fell_back=fell_back,
        graph_splits=splits,
    )


def _device_of(buffer: str) -> str:
    """The device that a buffer type belongs to: `CPU_Mapped`, `CPU_REPACK` and pinned `CUDA_Host` are system memory."""
    return "CPU" if buffer.startswith("CPU") or buffer.endswith("_Host") else buffer
