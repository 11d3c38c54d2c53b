"""Marks below the time line of an answer, where heat or a limit slowed a part of the machine that it needed."""

from __future__ import annotations

from msgspec.structs import replace

from homeai.events import AnyFact, Device, EngineReady, LoadEnded, Placement, Sample
from homeai.metrics.fold import fold_all
from homeai.metrics.view import view
from tests.metrics import stories
from tests.metrics.stories import ms
from widgets.phase_table import LABEL, NOTE, SPAN, phase_lines

WIDTH = 60
BAR = WIDTH - LABEL - SPAN - NOTE - 2


def total_line(*samples: Sample, layers_offloaded: int = 31, width: int = WIDTH, until: int | None = None) -> str:
    facts: list[AnyFact] = [
        replace(fact, engine=replace(fact.engine, layers_offloaded=layers_offloaded))
        if isinstance(fact, LoadEnded)
        else fact
        for fact in stories.session_facts()
    ]
    facts += [*stories.whole_answer()[:until], *samples]
    state = fold_all(sorted(facts, key=lambda fact: fact.at_ns))
    lines = [line.plain for line in phase_lines(view(state, 1, ms(20_000)), width)]
    assert {len(line) for line in lines} == {width}
    return lines[-1]


def flags(name: str, *up: int, probe: str = "nvidia") -> list[Sample]:
    return [
        Sample(at_ns=ms(at), took_ns=1, probe=probe, values={name: 60.0 * (at in up)}) for at in range(500, 11_500, 500)
    ]


HOT = flags("gpu_0_thermal_flag", *range(6500, 11_500, 500))


def test_a_stretch_is_marked_below_its_place_on_the_time_line() -> None:
    line = total_line(*HOT)
    assert line.startswith("total")
    marks = line[LABEL : LABEL + BAR]
    # From the sample before 6.5 s on, of 10.4 s that began at 1 s.
    assert marks == " " * (BAR // 2) + "▴" * (BAR - BAR // 2)
    assert "▴ slowed: heat" in line
    assert line.endswith(" s")


def test_causes_are_named_once_and_a_short_stretch_has_a_mark() -> None:
    line = total_line(*flags("gpu_0_power_cap_flag", 3000, 9000), *flags("throttled_percent", 5000, probe="cpu"))
    assert "▴ slowed: power limit…" in line
    assert line.count("▴") == 4, "three stretches, and the words"


def test_a_gpu_that_is_not_used_and_an_answer_that_runs_have_none() -> None:
    for line in (total_line(), total_line(*HOT, layers_offloaded=0), total_line(*HOT, until=-1)):
        assert "▴" not in line
        assert "slowed" not in line


def test_a_gpu_that_is_known_to_be_another_one_is_not_marked() -> None:
    cards = tuple(Device(name=f"CUDA{at}", type="gpu", description="RTX", id=f"0000:0{at}:00.0") for at in range(2))
    labels = {f"gpu_{at}_pci": card.id for at, card in enumerate(cards)}
    for hot, marked in ((0, True), (1, False)):
        values = {f"gpu_{at}_thermal_flag": float(at == hot) for at in range(2)}
        facts: list[AnyFact] = [
            Sample(at_ns=ms(at), took_ns=1, probe="nvidia", values=values, labels=labels)
            for at in range(500, 11_500, 500)
        ]
        for fact in [*stories.session_facts(), *stories.whole_answer()]:
            if isinstance(fact, EngineReady):
                facts.append(replace(fact, devices=cards))
            elif isinstance(fact, LoadEnded):
                places = (Placement(name="CUDA0", layers=31),)
                facts.append(replace(fact, engine=replace(fact.engine, layers_offloaded=31, devices=places)))
            else:
                facts.append(fact)
        state = fold_all(sorted(facts, key=lambda fact: fact.at_ns))
        assert bool(view(state, 1, ms(20_000)).slowed) == marked


def test_where_there_is_no_room_for_words_there_are_no_marks() -> None:
    assert "▴" not in total_line(*HOT, width=40)
