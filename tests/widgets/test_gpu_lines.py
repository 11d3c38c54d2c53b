"""GPUs in the machine's lines, and alarms of where the model lies."""

from __future__ import annotations

from dataclasses import replace as replace_frame
from typing import Any

import pytest
from msgspec.structs import replace

from homeai.events import AnyFact, Device, EngineReady, LoadEnded, Notice, Placement, Sample
from homeai.explain.brief import Brief
from homeai.metrics.alarms import placement_alarms
from homeai.metrics.fold import fold_all
from homeai.metrics.state import ProbeState
from tests.metrics import stories
from tests.metrics.stories import ms
from tests.widgets.test_truth import frame_of
from widgets.gpu_lines import gpu_height, gpu_lines, gpu_piece
from widgets.header import header_line
from widgets.machine import machine_height, machine_line, machine_lines, machine_pulse
from widgets.narrow import strip_lines
from widgets.side import side_lines

GIB = 2**30
FULL = {
    "percent": 97.0,
    "memory_total_bytes": 8.0 * GIB,
    "memory_used_bytes": 5.2 * GIB,
    "memory_free_bytes": 2.8 * GIB,
    "engine_bytes": 4.9 * GIB,
    "other_bytes": 0.3 * GIB,
    "power_watts": 285.0,
    "power_limit_watts": 320.0,
    "temperature_celsius": 71.0,
}


def gpu_sample(index: int = 0, **changes: float) -> dict[str, float]:
    return {f"gpu_{index}_{name}": value for name, value in (FULL | changes).items()}


def sample(*parts: dict[str, float], at_ms: float = 19_000, probe: str = "nvidia", **labels: str) -> Sample:
    values = {name: value for part in parts for name, value in part.items()}
    return Sample(at_ns=ms(at_ms), took_ns=1, probe=probe, values=values, labels=labels)


CPU = Sample(at_ns=ms(19_000), took_ns=1, probe="cpu", values={"machine_percent": 12.0})


def probes_of(*facts: AnyFact) -> Any:
    return fold_all([*stories.session_facts(), CPU, *facts]).probes


ONE = probes_of(sample(gpu_sample(), gpu_0_name="RTX [b]4060"))
TWO = probes_of(sample(gpu_sample(), gpu_sample(1, percent=3.0)))
SLOWED = probes_of(sample(gpu_sample(power_cap_flag=1.0, thermal_flag=0.0)))
HOT = probes_of(sample(gpu_sample(thermal_flag=1.0)))
APPLE = probes_of(
    sample({"gpu_0_percent": 40.0, "gpu_0_shared_used_bytes": 2.0 * GIB}, probe="apple", gpu_0_memory="shared")
)


def texts(lines: Any) -> list[str]:
    return [line.plain.rstrip() for line in lines]


def test_without_a_gpu_there_is_nothing_of_it() -> None:
    none = probes_of()
    assert gpu_lines(none, 80) == []
    assert gpu_piece(none, 8) is None
    assert machine_height(none, 2) == 4
    assert "GPU" not in machine_line(none, 80).plain
    assert machine_pulse(none).plain == "CPU  12 %"


def test_use_memory_power_and_heat_in_one_line() -> None:
    (line,) = texts(gpu_lines(ONE, 56))
    assert line.split() == ["GPU", "█", "97", "%", "5.20", "of", "8.00", "GiB", "285", "W", "71", "°C"]
    assert "°C" not in texts(gpu_lines(ONE, 46))[0]
    assert "5.20 of 8.00 GiB" in texts(gpu_lines(ONE, 46))[0]


def test_what_slows_it_is_said_in_words_before_all_else() -> None:
    for width in (44, 56, 80):
        assert "slowed: power limit" in texts(gpu_lines(SLOWED, width))[0]
        assert "slowed: heat" in texts(gpu_lines(HOT, width))[0]
    assert "slowed" not in texts(gpu_lines(ONE, 80))[0]
    assert "slowed: heat" in machine_line(HOT, 80).plain
    assert any("slowed: heat" in line for line in texts(gpu_lines(HOT, 80, 2)))


def test_a_high_window_draws_memory_power_and_heat_too() -> None:
    lines = texts(gpu_lines(ONE, 80, 2))
    assert [line[:4].strip() for line in lines] == ["GPU", "", "VRAM", "", "W"]
    assert lines[0].endswith("RTX [b]4060")
    assert "8.00 GiB" in lines[2]
    assert lines[2].endswith("engine 4.90 GiB")
    assert "285 W of 320" in lines[4]
    assert lines[4].endswith("71 °C")


def test_several_are_numbered_and_the_busiest_stands_for_all() -> None:
    lines = texts(gpu_lines(TWO, 56))
    assert [line[:4] for line in lines] == ["GPU0", "GPU1"]
    assert machine_pulse(TWO).plain == "GPU  97 %"


def test_one_that_shares_the_machines_memory_says_what_it_uses_of_it() -> None:
    assert "2.00 GiB" in texts(gpu_lines(APPLE, 56))[0]
    tall = texts(gpu_lines(APPLE, 80, 2))
    assert tall[2].startswith("MEM")
    assert tall[4].split()[:2] == ["W", "n/a"]


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("width", [36, 44, 56, 80])
@pytest.mark.parametrize("probes", [ONE, TWO, SLOWED, APPLE], ids=("one", "two", "slowed", "apple"))
def test_it_keeps_its_room(probes: dict[str, ProbeState], width: int, rows: int) -> None:
    lines = gpu_lines(probes, width, rows)
    assert len(lines) == gpu_height(probes, rows)
    assert len(machine_lines(probes, width, rows)) == machine_height(probes, rows)
    assert all(line.cell_length <= width for line in lines)


@pytest.mark.parametrize("height", [26, 32, 46, 60])
def test_the_panel_gives_it_its_lines(height: int) -> None:
    frame = frame_of([*stories.whole_session(), CPU, sample(gpu_sample()), *stories.whole_answer(2)])
    lines = texts(side_lines(frame, 56, height))
    assert len(lines) == height
    machine = next(y for y, line in enumerate(lines) if line.startswith("─ machine"))
    assert any(line.startswith("GPU") for line in lines[machine:])


# --- where the model lies ---------------------------------------------------------------------------------------------

READY = EngineReady(
    at_ns=ms(200), generation=1, pid=7, backend="llama.cpp", build="1", gpu_offload=True,
    devices=(Device(name="CUDA0", description="RTX", type="gpu"),),
)  # fmt: skip
PARTLY = replace(
    stories.ENGINE,
    layers_offloaded=20,
    layers_total=33,
    gpu_layers_asked=-1,
    devices=(Placement(name="CUDA0", layers=20), Placement(name="CPU", layers=13)),
)


def loaded(**changes: Any) -> list[AnyFact]:
    facts: list[AnyFact] = []
    for fact in stories.session_facts():
        if isinstance(fact, EngineReady):
            facts.append(READY)
        elif isinstance(fact, LoadEnded):
            facts.append(replace(fact, engine=replace(PARTLY, **changes)))
        else:
            facts.append(fact)
    return facts


def test_a_misplaced_model_stays_visible_in_every_window() -> None:
    (alarm,) = placement_alarms(fold_all(loaded()))
    assert alarm.startswith("20 of 33 layers are on the GPU")
    before, answered = frame_of(loaded(), place=(0, 0)), frame_of([*loaded(), *stories.whole_answer()])
    for frame in (before, answered):
        assert any(line.startswith("! 20 of 33 layers are on the GPU") for line in texts(side_lines(frame, 56, 32)))
        assert any(line.startswith("! 20 of 33 layers are on the GPU") for line in texts(strip_lines(frame, 76)))
        assert "! " in header_line(frame, 116).plain
    # In the strip it takes the place of how it is, and gives way to what is wrong.
    told = replace_frame(answered, why=Brief(wait="Waited for it.", short="604 new tokens to read"))
    assert texts(strip_lines(told, 76))[2].startswith("! 20 of 33 layers are on the GPU")
    wrong = replace_frame(answered, why=Brief(alarm="It is hot.", short="It is hot"))
    assert texts(strip_lines(wrong, 76))[2].startswith("why: ! It is hot")
    as_asked = frame_of(loaded(gpu_layers_asked=20))
    assert placement_alarms(as_asked.state) == ()
    assert "! " not in header_line(as_asked, 116).plain


def test_what_the_gpus_own_memory_told_stays_until_the_next_load() -> None:
    whole = loaded(layers_offloaded=33)
    spill = Notice(at_ns=ms(900), code="vram_spill", message="6 GiB were put on RTX, but it holds 4 GiB.")
    assert placement_alarms(fold_all([*whole, spill])) == (spill.message,)
    again = [replace(fact, at_ns=ms(2000), load_id=2) for fact in whole[-2:]]
    assert placement_alarms(fold_all([*whole, spill, *again])) == ()
    lost = Notice(at_ns=ms(950), code="gpu_lost", message="RTX: the GPU was lost.")
    back = Notice(at_ns=ms(990), code="gpu_back", message="RTX is back.")
    assert placement_alarms(fold_all([*whole, lost])) == (lost.message,)
    assert placement_alarms(fold_all([*whole, lost, back])) == ()


def test_an_older_answer_says_so_in_the_same_place() -> None:
    frame = frame_of([*loaded(), *stories.whole_answer()], place=(1, 2))
    assert "answer 1 of 2" in texts(side_lines(frame, 56, 32))[1]
