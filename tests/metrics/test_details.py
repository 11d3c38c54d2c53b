"""Every figure of an answer, compared with the object that files and scripts get."""

from __future__ import annotations

from typing import Any

import pytest

from homeai.events import AnyFact, Fault, Queued, Sample, Sampler
from homeai.metrics.contract import contract
from homeai.metrics.details import Figure, details
from homeai.metrics.fold import fold_all
from homeai.metrics.machine_figures import machine_words
from homeai.metrics.quantities import metrics
from tests.metrics import stories
from tests.metrics.stories import ms

TOO_LONG = Fault(code="context_full", message="too long")
STORIES: dict[str, list[AnyFact]] = {
    "whole": stories.whole_session(),
    "stopped": stories.stopped_in_prefill(),
    "died": stories.died_while_writing(),
    "queued": [*stories.session_facts(), stories.submitted(1000), Queued(at_ns=ms(1000.2), answer_id=1, behind=(7,))],
    "refused": [*stories.session_facts(), *stories.prompt_facts()[:2], stories.ended(2000, "error", fault=TOO_LONG)],
    "half recorded": [*stories.session_facts(), *stories.writing_facts()[4:], stories.ended(11424.7)],
    "bare": [stories.submitted(5, sampler=Sampler(seed=7, max_tokens=40)), stories.ended(7, "cancelled")],
}


def figures(facts: list[AnyFact], now_ms: float | None = None) -> dict[str, Figure]:
    state = fold_all(facts)
    return {
        figure.path: figure
        for group in details(state.answers[1], None if now_ms is None else ms(now_ms), state.engine.ready)
        for figure in group.figures
    }


def at(tree: Any, path: str) -> Any:
    for name in path.split("."):
        tree = tree[int(name)] if name.isdigit() else tree[name]
    return tree


@pytest.mark.parametrize("story", STORIES)
def test_every_figure_is_that_of_the_contract(story: str) -> None:
    told = contract(fold_all(STORIES[story]), 1)
    compared = 0
    for path, figure in figures(STORIES[story]).items():
        if path in ("context_own", "reused_share", "stop_ms"):
            continue  # of a screen only
        if path.startswith("machine.") and path != "machine.major_faults":
            continue  # mean and largest in words
        if path.startswith("engine.devices") and told["engine"]["devices"] is None:
            continue
        value = at(told, path)
        if figure.value is None:
            assert value is None, path
            assert figure.missing == told["missing"][path], path
        elif figure.unit == "ns" and isinstance(figure.value, int):
            assert value == pytest.approx(figure.value / 1e6), path
        elif isinstance(value, bool):
            assert figure.value == ("on" if value else "off"), path
        elif figure.unit == "words":
            assert figure.value == (f"{value:g}" if isinstance(value, float) else str(value)), path
        else:
            assert value == pytest.approx(figure.value), path
        compared += 1
    assert compared > 40


@pytest.mark.parametrize("story", STORIES)
def test_every_metric_is_there_with_its_sentence_and_what_is_missing_has_a_reason(story: str) -> None:
    found = figures(STORIES[story])
    assert found.keys() >= metrics().keys()
    for path, figure in found.items():
        assert figure.help.endswith("."), path
        assert (figure.value is None) == bool(figure.missing), path
    assert all(found[name].help == metric.formula for name, metric in metrics().items())


def test_what_runs_has_its_length_so_far() -> None:
    reading = [*stories.session_facts(), *stories.prompt_facts()[:6]]
    assert figures(reading, 2103)["phases_ms.prefill"].value == ms(1100)
    assert figures(reading)["phases_ms.prefill"].missing == "still running"
    assert figures(reading, 2103)["phases_ms.decode"].missing == "not yet"


def test_shares_are_of_their_whole() -> None:
    found = figures(stories.whole_session())
    phases = [figure.share for path, figure in found.items() if path.startswith("phases_ms.") and figure.share]
    assert sum(phases) == pytest.approx(1)
    assert found["phases_ms.total"].share is None
    parts = [figure.share for path, figure in found.items() if path.startswith("decode_parts_ms.")]
    assert sum(share or 0 for share in parts) == pytest.approx(1)
    assert found["decode_parts_ms.idle"].value == ms(190)


def test_readings_of_the_machine_are_told_in_the_units_that_their_names_say() -> None:
    values = [{"machine_percent": 40.0, "frequency_mhz": 3200.0}, {"machine_percent": 98.0, "frequency_mhz": 3200.0}]
    facts = [*stories.session_facts(), *stories.prompt_facts()]
    facts += [Sample(at_ns=ms(2000), took_ns=1, probe="cpu", values=value) for value in values]
    facts += [
        Sample(at_ns=ms(2000), took_ns=1, probe="nvidia", values={"gpu_0_power_watts": 311.0, "gpu_0_percent": 99})
    ]
    found = {path: (figure.label, figure.value) for path, figure in figures(facts).items()}
    assert found["machine.cpu.machine_percent"] == ("cpu: machine", "69 %, at most 98 %")
    assert found["machine.cpu.frequency_mhz"] == ("cpu: frequency", "3,200 MHz")
    assert found["machine.nvidia.gpu_0_power_watts"] == ("nvidia: gpu 0 power", "311 W")
    assert found["machine.nvidia.gpu_0_percent"] == ("nvidia: gpu 0", "99 %")


def test_what_the_machine_did_in_each_phase_and_what_slowed_it() -> None:
    facts = [*stories.session_facts(), *stories.whole_answer()]
    for at in range(500, 12_000, 500):
        values = {"gpu_0_power_watts": 200.0, "gpu_0_percent": 90.0, "gpu_0_thermal_flag": float(at in (2000, 2500))}
        facts.append(Sample(at_ns=ms(at), took_ns=1, probe="nvidia", values=values))
    found = figures(sorted(facts, key=lambda fact: fact.at_ns))
    told = {path.removeprefix("machine."): (figure.label, figure.words) for path, figure in found.items()}
    assert told["phases.prefill.gpu_percent"] == ("reading: GPU", "90 %")
    assert told["phases.decode.gpu_watts"] == ("writing: GPU power", "200 W")
    assert told["phases.decode.gpu_joules"] == ("writing: GPU energy", "1,622 J")
    assert told["joules_per_output_token"] == ("energy to write one", "13.5 J/token")
    assert found["machine.vram_peak_bytes"].missing == "no GPU tells it"
    assert told["throttles"] == ("slowed by", "heat (GPU 0) from 500 ms to 1.50 s")
    silent = figures([*stories.session_facts(), *stories.whole_answer()])
    assert silent["machine.throttles"].missing == silent["machine.vram_peak_bytes"].missing


def test_a_counter_is_what_it_counted_and_a_flag_how_often_it_was_up() -> None:
    facts = [*stories.session_facts(), *stories.prompt_facts()]
    for at, joules, flag in ((2000, 5000.0, 0.0), (2500, 5100.0, 1.0), (3000, 5350.0, 1.0), (3500, 5400.0, 0.0)):
        values = {"gpu_0_energy_joules": joules, "gpu_0_thermal_flag": flag, "gpu_0_pcie_lanes": 16.0}
        facts.append(Sample(at_ns=ms(at), took_ns=1, probe="nvidia", values=values))
    found = {path: (figure.label, figure.value) for path, figure in figures(facts).items()}
    assert found["machine.nvidia.gpu_0_energy_joules"] == ("nvidia: gpu 0 energy", "400 J")
    assert found["machine.nvidia.gpu_0_pcie_lanes"] == ("nvidia: gpu 0 pcie lanes", "16")
    assert found["machine.nvidia.gpu_0_thermal_flag"] == ("nvidia: gpu 0 thermal", "50 % of the time")
    read = contract(fold_all(facts), 1)["machine"]["nvidia"]["gpu_0_energy_joules"]
    assert (read["grown"], read["last"]) == (400.0, 5400.0)


def test_no_two_readings_of_a_probe_have_one_name() -> None:
    names = ("engine_read_bytes", "engine_read_bytes_per_s", "program_percent_of_core", "program_percent_of_machine")
    read = [Sample(at_ns=ms(at), took_ns=1, probe="x", values=dict.fromkeys(names, 1.0)) for at in (2000, 4000)]
    answer = fold_all([*stories.session_facts(), *stories.whole_answer()[:8], *read]).answers[1]
    labels = [label for _, label, _ in machine_words(answer)]
    assert labels == ["x: engine read", "x: engine read rate", "x: program", "x: program of all cores"]
