"""Is the right cause named? Causes injected on the real engine, clean runs, and predictions against what happened.

Run with `uv run pytest -m benchmark -s tests/benchmarks/test_diagnosis.py` on a machine that does nothing else: every
other program is a cause of its own. BENCH_BRIEF=1 has one repeat of each; BENCH_ONLY=word chooses among the causes.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections import Counter
from pathlib import Path

import pytest

from homeai.events import Ceilings
from homeai.explain import Explanation
from homeai.explain.predict import prediction_error
from homeai.lab.calibrate import calibrate
from homeai.metrics.roofline import fit
from homeai.metrics.soundness import disturbances
from homeai.models.modelfile import examine
from homeai.settings import load
from tests.benchmarks.injected import INJECTIONS, Injection, bench, story
from tests.benchmarks.report import long_or_brief, say, tell, tell_load
from tests.engine.rig import starter

pytestmark = [
    pytest.mark.benchmark,
    pytest.mark.model,
    pytest.mark.skipif(sys.platform != "linux", reason="evicts page caches and halts processes as Linux does it"),
]

REPEATS = long_or_brief(5, 1)
CLEAN = long_or_brief(40, 8)
PREDICTED = long_or_brief(30, 10)
ONLY = os.environ.get("BENCH_ONLY", "")


@pytest.fixture(scope="module")
def ceilings() -> Ceilings:
    found, _ = calibrate(load({}), examine(starter()), budget_s=long_or_brief(25.0, 10.0), tell=lambda _: None)
    form = fit(found.steps)
    tell("calibration", f"{form}, memory {(found.read_bytes_per_s or 0) / 1e9:.1f} GB/s")
    tell_load()
    if reasons := disturbances(found):
        pytest.skip(f"this machine is too busy to be measured: {' '.join(reasons)}")
    return found


HARMLESS = "no harm done"


def first_of(explanation: Explanation | None, injection: Injection) -> str:
    if explanation is None:
        return HARMLESS
    ranked = getattr(explanation, injection.subject)
    return ranked[0].id if ranked else "nothing"


def test_the_injected_cause_is_named_first(ceilings: Ceilings, tmp_path: Path) -> None:
    hits = runs = 0
    rows: list[tuple[str, str, Counter[str]]] = []
    for injection in INJECTIONS:
        if ONLY and ONLY not in injection.name:
            continue
        named: Counter[str] = Counter()
        for repeat in range(REPEATS):
            explanation = injection.run(ceilings, tmp_path, 1000 + repeat)
            named[first_of(explanation, injection)] += 1
            if explanation is not None and first_of(explanation, injection) != injection.expected:
                ranked = getattr(explanation, injection.subject)
                tell(f"missed: {injection.name}", "; ".join(f"{each.id}: {each.words}" for each in ranked) or "nothing")
        rows.append((injection.name, injection.expected, named))
        hits += named[injection.expected]
        runs += sum(named.values()) - named[HARMLESS]
    print("\n\n  cause                                 expected first      found first")
    for name, expected, named in rows:
        print(f"  {name:<38}{expected:<20}{', '.join(f'{rule} x{n}' for rule, n in named.most_common())}")
    tell_load()
    left_out = sum(named[HARMLESS] for _, _, named in rows)
    value = f"{hits} of {runs} ({hits / runs:.0%}), {left_out} that did no harm left out"
    say("injected cause named first", value, ">= 90 %", hits >= 0.9 * runs)


def test_clean_runs_raise_no_alarm(ceilings: Ceilings) -> None:
    alarms: Counter[str] = Counter()
    quiet = 0
    with bench(ceilings) as made:
        chat = made.session.open_chat()
        for number in range(CLEAN):
            if number % 4 == 0:
                chat = made.session.open_chat()
            words = (20, 60, 150)[number % 3]
            explanation = made.run(story(words, 5000 + number), chat=chat, tokens=64)
            quiet += not explanation.alarms
            alarms.update(finding.id for finding in explanation.alarms)
    tell("alarms", ", ".join(f"{rule} x{n}" for rule, n in alarms.most_common()) or "none")
    tell_load()
    say("clean runs without an alarm", f"{quiet} of {CLEAN} ({quiet / CLEAN:.0%})", ">= 95 %", quiet >= 0.95 * CLEAN)


def test_predictions(ceilings: Ceilings) -> None:
    ttft: list[float] = []
    decode: list[float] = []
    with bench(ceilings) as made:
        chat = made.session.open_chat()
        for number in range(PREDICTED):
            if number % 5 == 0:
                chat = made.session.open_chat()
            answer_id = made.ask(story((15, 80, 300, 700, 30)[number % 5], 9000 + number), chat=chat, tokens=48)
            made.wait(answer_id)
            error = prediction_error(made.session.state.answers[answer_id])
            assert error is not None
            if error.ttft is not None:
                ttft.append(abs(error.ttft))
            if error.decode is not None:
                decode.append(abs(error.decode))
    tell_load()
    for name, errors in (("first token", ttft), ("rate", decode)):
        median = statistics.median(errors)
        say(f"median error of the expected {name} over {len(errors)}", f"{median:.1%}", "<= 15 %", median <= 0.15)
