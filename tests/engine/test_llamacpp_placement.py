"""Placement from the words of llama.cpp: a CPU build, a full and a partial offload, two devices."""

from __future__ import annotations

from homeai.engine.llamacpp.placement import read_layout
from homeai.events import Placement

MIB = 1024 * 1024


def layers(*devices: str) -> list[str]:
    return [f"load_tensors: layer {i:3d} assigned to device {name}, is_swa = 0\n" for i, name in enumerate(devices)]


def test_a_cpu_build() -> None:
    layout = read_layout(
        [
            *layers(*["CPU"] * 31),
            "load_tensors:   CPU_Mapped model buffer size =    92.10 MiB\n",
            "llama_kv_cache:        CPU KV buffer size =    90.00 MiB\n",
            "llama_context:        CPU  output buffer size =     0.19 MiB\n",
            "resolve_fused_ops: Flash Attention enabled\n",
            "sched_reserve:        CPU compute buffer size =    98.25 MiB\n",
        ]
    )
    (cpu,) = layout.devices
    assert (cpu.name, cpu.layers) == ("CPU", 30)
    assert (cpu.model_bytes, cpu.kv_bytes) == (round(92.10 * MIB), 90 * MIB)
    assert cpu.compute_bytes == round(98.25 * MIB) + round(0.19 * MIB)
    assert (layout.layers_offloaded, layout.layers_total, layout.flash_attention) == (0, 31, True)


def test_everything_on_one_gpu_with_pinned_host_memory_counted_as_the_cpus() -> None:
    layout = read_layout(
        [
            *layers(*["CUDA0"] * 33),
            "load_tensors: offloaded 33/33 layers to GPU\n",
            "load_tensors:        CUDA0 model buffer size =  4155.99 MiB\n",
            "load_tensors:   CPU_Mapped model buffer size =   281.81 MiB\n",
            "llama_kv_cache:      CUDA0 KV buffer size =   512.00 MiB\n",
            "sched_reserve:      CUDA0 compute buffer size =   258.50 MiB\n",
            "sched_reserve:  CUDA_Host compute buffer size =    16.01 MiB\n",
        ]
    )
    gpu, cpu = layout.devices
    assert (gpu.name, gpu.layers, gpu.kv_bytes) == ("CUDA0", 32, 512 * MIB)
    assert cpu == Placement(
        name="CPU", layers=0, model_bytes=round(281.81 * MIB), kv_bytes=None, compute_bytes=round(16.01 * MIB)
    )
    assert (layout.layers_offloaded, layout.layers_total) == (33, 33)


def test_a_partial_offload_counts_the_output_layer_as_llama_cpp_does() -> None:
    layout = read_layout(layers(*["CPU"] * 21, *["Vulkan0"] * 10))
    assert {device.name: device.layers for device in layout.devices} == {"Vulkan0": 9, "CPU": 21}
    assert (layout.layers_offloaded, layout.layers_total) == (10, 31)


def test_two_gpus_come_before_the_cpu() -> None:
    layout = read_layout(layers(*["CPU"] * 2, *["CUDA0"] * 6, *["CUDA1"] * 7))
    assert [(device.name, device.layers) for device in layout.devices] == [("CUDA0", 6), ("CUDA1", 6), ("CPU", 2)]


def test_flash_attention_that_fell_back_is_told_as_off() -> None:
    lines = [
        "resolve_fused_ops: layer 0 is assigned to device CUDA0 but Flash Attention is assigned to device CPU "
        "(usually due to missing support)\n",
        "resolve_fused_ops: Flash Attention not supported, set to disabled\n",
    ]
    layout = read_layout(lines)
    assert (layout.flash_attention, layout.attention_fell_back) == (False, True)


def test_into_how_many_pieces_a_token_is_cut() -> None:
    alike = "sched_reserve: graph: nodes = 1027, splits = 2, input objects = 9, input tensors = 9\n"
    apart = (
        "sched_reserve: graph (pp bs=512, tg bs=1): nodes = 1027, splits = 242 / 3, input objects = 9, "
        "input tensors = 9\n"
    )
    assert read_layout([alike]).graph_splits == 2
    assert read_layout([apart]).graph_splits == 3


def test_nothing_said_is_nothing_known() -> None:
    layout = read_layout([])
    assert (layout.devices, layout.layers_offloaded, layout.layers_total, layout.flash_attention) == (
        (),
        None,
        None,
        None,
    )


def test_a_recurrent_state_counts_as_cache() -> None:
    layout = read_layout([*layers("CPU", "CPU"), "llama_memory_recurrent:        CPU RS buffer size =    19.00 MiB\n"])
    assert layout.devices[0].kv_bytes == 19 * MIB
