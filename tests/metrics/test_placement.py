"""What is said about where a model lies: by the engine's report, and by the GPUs' own memory."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from homeai.events import Device, EngineFacts, EngineReady, LoadEnded, Placement, Sample
from homeai.metrics.fold import fold_all
from homeai.metrics.placement import Gpu, findings, gpus, matched, memory_findings, where_it_runs
from tests.metrics import stories

GIB = 1 << 30
MIB = 1 << 20
CUDA = Device(name="CUDA0", description="Fake RTX 4090", type="gpu", id="0000:a1:00.0", total_bytes=24 * GIB)
CPU = Device(name="CPU", type="cpu")
CARD = Gpu("nvidia", 0, name="Fake RTX 4090", pci="0000:a1:00.0", total_bytes=24.0 * GIB, free_bytes=10.0 * GIB)


def ready(*devices: Device, gpu_offload: bool = True) -> EngineReady:
    return EngineReady(
        at_ns=1, generation=1, pid=7, backend="llama.cpp", build="0.3.36", gpu_offload=gpu_offload, devices=devices
    )


def load(*devices: Placement, **engine: Any) -> LoadEnded:
    """A load of a model of 30 blocks and an output: 31 layers."""
    blocks = sum(device.layers for device in devices if device.name != "CPU")
    facts: dict[str, Any] = {
        "devices": devices,
        "layers_offloaded": blocks + (1 if blocks else 0),
        "layers_total": 31,
        "gpu_layers_asked": -1,
        "graph_splits": 2,
    }
    model = replace(stories.MODEL, layers=30)
    return replace(stories.LOAD_ENDED, model=model, engine=replace(stories.ENGINE, **(facts | engine)))


ALL_ON_CPU = Placement(name="CPU", layers=30, model_bytes=92 * MIB, kv_bytes=90 * MIB, compute_bytes=98 * MIB)
ALL_ON_GPU = Placement(name="CUDA0", layers=30, model_bytes=6 * GIB, kv_bytes=GIB, compute_bytes=258 * MIB)
REST = Placement(name="CPU", model_bytes=282 * MIB, compute_bytes=16 * MIB)


def codes(*args: Any, **kwargs: Any) -> list[tuple[str, str]]:
    return [(finding.code, finding.kind) for finding in findings(*args, **kwargs)]


def test_all_on_the_gpu_is_nothing_to_say() -> None:
    assert findings(load(ALL_ON_GPU, REST), ready(CUDA, CPU), (CARD,)) == ()


def test_who_asked_for_no_gpu_is_told_nothing() -> None:
    assert findings(load(ALL_ON_CPU, gpu_layers_asked=0, gpu_asked=True), ready(CUDA, CPU), (CARD,)) == ()


def test_a_record_that_does_not_tell_what_was_asked_raises_nothing() -> None:
    assert findings(load(ALL_ON_CPU, gpu_layers_asked=None), ready(CPU, gpu_offload=False)) == ()


def test_a_machine_without_a_gpu_is_explained_and_no_alarm() -> None:
    assert codes(load(ALL_ON_CPU), ready(CPU, gpu_offload=False)) == [("cpu_only_build", "explanation")]


@pytest.mark.parametrize(("asked", "known"), [(True, ()), (False, (CARD,)), (True, (CARD,))])
def test_a_build_without_gpu_support_is_an_alarm_where_a_gpu_was_asked_for_or_is_there(
    asked: bool, known: tuple[Gpu, ...]
) -> None:
    (finding,) = findings(load(ALL_ON_CPU, gpu_asked=asked), ready(CPU, gpu_offload=False), known)
    assert (finding.code, finding.kind) == ("cpu_only_build", "alarm")
    assert "homeai setup" in finding.help
    assert ("Fake RTX 4090" in finding.message) == bool(known)


@pytest.mark.parametrize("offload", [True, False])
@pytest.mark.parametrize(("layers", "asked", "said"), [(5, True, True), (5, False, False), (-1, True, False)])
def test_layers_that_were_asked_for_in_vain_are_said_to_be_ignored(
    layers: int, asked: bool, said: bool, offload: bool
) -> None:
    (finding,) = findings(load(ALL_ON_CPU, gpu_asked=asked, gpu_layers_asked=layers), ready(CPU, gpu_offload=offload))
    assert finding.message.endswith("on the CPU, and gpu_layers 5 is ignored." if said else "on the CPU.")


@pytest.mark.parametrize(
    ("visible", "words"),
    [
        (None, "driver"),
        ("", "hides every NVIDIA GPU"),
        ("-1", "hides every NVIDIA GPU"),
        ("7", "CUDA_VISIBLE_DEVICES is 7"),
    ],
)
def test_asked_for_the_gpu_and_none_is_visible(visible: str | None, words: str) -> None:
    (finding,) = findings(load(ALL_ON_CPU, gpu_asked=True), ready(CPU), (), visible)
    assert (finding.code, finding.kind) == ("no_gpu_visible", "alarm")
    assert words in finding.help


def test_a_visible_gpu_without_a_layer_is_an_alarm() -> None:
    assert codes(load(ALL_ON_CPU), ready(CUDA, CPU)) == [("nothing_offloaded", "alarm")]


def test_a_partial_offload_says_the_real_count_and_is_an_alarm_unless_it_was_asked_for() -> None:
    placed = (
        Placement(name="CUDA0", layers=9, model_bytes=30 * MIB, kv_bytes=27 * MIB),
        Placement(name="CPU", layers=21, model_bytes=62 * MIB, kv_bytes=63 * MIB),
    )
    (finding,) = findings(load(*placed), ready(CUDA, CPU))
    assert (finding.code, finding.kind) == ("partial_offload", "alarm")
    assert finding.message.startswith("10 of 31 layers are on the GPU")
    (finding,) = findings(load(*placed, gpu_layers_asked=10, gpu_asked=True), ready(CUDA, CPU))
    assert (finding.kind, finding.help) == ("explanation", "You asked for 10; --gpu-layers all takes all.")
    assert codes(load(*placed, gpu_layers_asked=20), ready(CUDA, CPU)) == [("partial_offload", "alarm")]


def test_a_cache_in_main_memory_below_layers_on_the_gpu() -> None:
    placed = replace(ALL_ON_GPU, kv_bytes=None), replace(REST, kv_bytes=GIB)
    assert codes(load(*placed, kv_offload=False, graph_splits=62), ready(CUDA, CPU)) == [("kv_on_cpu", "explanation")]
    (finding,) = findings(load(*placed), ready(CUDA, CPU))
    assert finding.kind == "alarm"
    assert finding.message.startswith("100 % of the cache lies in main memory")


def test_attention_that_the_gpu_cannot_compute() -> None:
    fell_back = load(ALL_ON_GPU, REST, attention_fell_back=True, flash_attention=False, kv_type_k="q5_1")
    (finding,) = findings(fell_back, ready(CUDA, CPU))
    assert (finding.code, finding.kind) == ("attention_fell_back", "alarm")
    assert "a cache of q5_1/f16" in finding.message
    (finding,) = findings(load(ALL_ON_GPU, REST, graph_splits=62), ready(CUDA, CPU))
    assert (finding.code, finding.kind) == ("attention_on_cpu", "alarm")


# --- which GPU it is --------------------------------------------------------------------------------------------------

TWO = (
    Gpu("nvidia", 0, name="Fake GTX 1060", uuid="GPU-11112222-a", pci="0000:01:00.0"),
    Gpu("nvidia", 1, name="Fake RTX 4090", uuid="GPU-33334444-b", pci="0000:02:00.0"),
)
TWINS = tuple(Gpu("nvidia", i, name="Fake RTX 4090", uuid=f"GPU-{i}000-a", pci=f"0000:0{i}:00.0") for i in range(2))


def cuda(index: int, pci: str = "", description: str = "Fake RTX 4090") -> Device:
    return Device(name=f"CUDA{index}", description=description, type="gpu", id=pci)


def test_the_address_on_the_bus_is_sure() -> None:
    assert matched([cuda(0, "0000:02:00.0"), cuda(1, "0000:01:00.0")], TWO) == {"CUDA0": TWO[1], "CUDA1": TWO[0]}


@pytest.mark.parametrize(
    ("visible", "expected"),
    [("GPU-33334444-b", TWO[1]), ("GPU-3333", TWO[1]), ("GPU-1111,GPU-3333", TWO[0])],
)
def test_an_id_in_cuda_visible_devices_is_sure(visible: str, expected: Gpu) -> None:
    assert matched([cuda(0, description="?")], TWO, {"CUDA_VISIBLE_DEVICES": visible})["CUDA0"] == expected


@pytest.mark.parametrize(("visible", "expected"), [("1", 1), ("1,0", 1), ("0,1", 0)])
def test_numbers_are_sure_in_the_order_of_the_bus_only(visible: str, expected: int) -> None:
    environ = {"CUDA_VISIBLE_DEVICES": visible}
    by_bus = {**environ, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert matched([cuda(0)], TWINS, by_bus)["CUDA0"] == TWINS[expected]
    # Of two alike neither the number nor the name says which one it is.
    assert matched([cuda(0), cuda(1)], TWINS, environ)["CUDA0"] is None


def test_a_name_that_only_one_has_is_sure() -> None:
    assert matched([cuda(0)], TWO, {"CUDA_VISIBLE_DEVICES": "1"})["CUDA0"] == TWO[1]


def test_the_only_one_that_a_probe_tells_of_is_not_one_elsewhere_on_the_bus() -> None:
    assert matched([cuda(0, "0000:09:00.0", "Arc")], TWO[:1]) == {"CUDA0": None}
    assert matched([cuda(0, "", "Arc")], TWO[:1]) == {"CUDA0": TWO[0]}


def test_no_gpu_no_match() -> None:
    assert matched([CPU], TWO, {"CUDA_VISIBLE_DEVICES": ""}) == {}
    assert matched([cuda(0)], ()) == {"CUDA0": None}


def test_gpus_of_the_newest_samples_without_lost_ones() -> None:
    labels = {"gpu_0_name": "A", "gpu_1_name": "B", "gpu_1_memory": "shared"}
    values = {"gpu_0_percent": 1.0, "gpu_0_memory_free_bytes": 5.0, "gpu_1_percent": 2.0}
    first = Sample(at_ns=1, probe="nvidia", took_ns=1, values=values, labels=labels)
    found = gpus(fold_all([first]).probes)
    assert [(gpu.name, gpu.free_bytes, gpu.shares_memory) for gpu in found] == [("A", 5.0, False), ("B", None, True)]
    lost = Sample(at_ns=2, probe="nvidia", took_ns=1, values={"gpu_1_percent": 2.0}, missing={"gpu_0_*": "lost"})
    assert [gpu.name for gpu in gpus(fold_all([first, lost]).probes)] == ["B"]


# --- the GPU's own word -----------------------------------------------------------------------------------------------

PUT = 6 * GIB + GIB + 258 * MIB


def told(gpu: Gpu, **before: float) -> list[tuple[str, str]]:
    held = {("nvidia", 0): before["used"]} if before else {}
    return [(found.code, found.kind) for found in memory_findings(load(ALL_ON_GPU, REST), {"CUDA0": gpu}, held)]


def card(**values: Any) -> Gpu:
    usual: dict[str, Any] = {"name": "Fake", "total_bytes": 24.0 * GIB, "free_bytes": 10.0 * GIB}
    return Gpu("nvidia", 0, **(usual | values))


def test_a_gpu_that_holds_what_was_put_there_says_nothing() -> None:
    assert told(card(engine_bytes=PUT + 300 * MIB)) == []
    assert told(card(used_bytes=9.0 * GIB), used=1.5 * GIB) == []
    assert told(card(used_bytes=9.0 * GIB)) == []


def test_a_gpu_that_holds_less_has_spilled() -> None:
    assert told(card(engine_bytes=3.0 * GIB)) == [("vram_spill", "alarm")]
    assert told(card(used_bytes=4.0 * GIB), used=1.5 * GIB) == [("vram_spill", "alarm")]


def test_a_full_gpu_and_one_with_others_on_it() -> None:
    full = card(engine_bytes=PUT + MIB, free_bytes=100.0 * MIB, other_bytes=4.0 * GIB, others="firefox, Xorg")
    found = memory_findings(load(ALL_ON_GPU, REST), {"CUDA0": full}, {})
    assert [finding.code for finding in found] == ["vram_full", "gpu_shared"]
    assert "firefox, Xorg" in found[1].message


def test_a_gpu_without_memory_of_its_own_or_that_is_not_known_for_sure_is_not_judged() -> None:
    assert told(card(shares_memory=True, engine_bytes=0.0)) == []
    assert memory_findings(load(ALL_ON_GPU, REST), {"CUDA0": None}, {}) == ()


def test_the_memory_set_aside_for_a_processors_own_graphics_is_not_judged() -> None:
    own = Device(name="Vulkan0", description="Radeon 780M", type="igpu", id="0000:a1:00.0")
    aside = Gpu("amd", 0, pci="0000:a1:00.0", total_bytes=512.0 * MIB, used_bytes=500.0 * MIB, free_bytes=12.0 * MIB)
    places = matched((own, CPU), (aside,))
    put = replace(ALL_ON_GPU, name="Vulkan0")
    assert places["Vulkan0"] is not None
    assert memory_findings(load(put, REST), places, {("amd", 0): 400.0 * MIB}) == ()


def test_two_devices_on_one_gpu_are_added() -> None:
    both = load(ALL_ON_GPU, replace(ALL_ON_GPU, name="CUDA1"), REST)
    gpu = card(engine_bytes=float(PUT))
    assert [f.code for f in memory_findings(both, {"CUDA0": gpu, "CUDA1": gpu}, {})] == ["vram_spill"]


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        (EngineFacts(backend="x", build="1", threads=2), "CPU, 2 threads"),
        (EngineFacts(backend="x", build="1"), "CPU"),
        (EngineFacts(backend="x", build="1", layers_offloaded=20, layers_total=49), "GPU, 20 of 49 layers"),
        (
            EngineFacts(
                backend="x",
                build="1",
                layers_offloaded=31,
                layers_total=31,
                devices=(Placement(name="CUDA0"), Placement(name="CPU")),
            ),
            "CUDA0, 31 of 31 layers",
        ),
    ],
)
def test_where_the_model_runs_is_what_the_engine_reports(engine: EngineFacts, words: str) -> None:
    assert where_it_runs(engine) == words
