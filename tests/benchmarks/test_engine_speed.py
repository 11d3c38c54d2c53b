"""The engine against its peers: the real starter model, interleaved runs, medians, ratios within one run.

Run with `uv run pytest -m benchmark -s tests/benchmarks/test_engine_speed.py` on a machine that does nothing else.
Each line says what was reached, what was wanted, and whether it was met.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from homeai.events import LoadEnded, LoadStarted, Sampler
from homeai.metrics.contract import contract
from homeai.models.modelfile import examine
from homeai.platform import usable_cores
from homeai.session import Session
from tests.benchmarks.report import say
from tests.engine.recorder import Recorder
from tests.engine.rig import options, starter

pytestmark = [pytest.mark.benchmark, pytest.mark.model]

THREADS = usable_cores().usable
ROUNDS = 7
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"


class Peer:
    def __init__(self, kind: str) -> None:
        command = [sys.executable, "-m", "tests.benchmarks.peer", kind, str(starter()), "4096", str(THREADS)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        while not (line := self._process.stdout.readline()).startswith("{"):
            assert line, "the peer died"
        result: dict[str, Any] = json.loads(line)
        return result

    def run(self, **request: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._read()

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


class Engine:
    def __init__(self) -> None:
        self.recorder = Recorder()
        self.session = Session(options=options(threads=THREADS, threads_batch=THREADS), on_fact=self.recorder)
        self.session.use_model(examine(starter()))
        self.recorder.wait_for(LoadEnded)

    def run(self, prompt: str, tokens: int) -> dict[str, Any]:
        answer = self.session.ask(self.session.open_chat(), prompt, sampler=Sampler(temperature=0.0, max_tokens=tokens))
        assert self.session.wait(answer, 300)
        return contract(self.session.state, answer)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    made = Engine()
    yield made
    made.session.close()


@pytest.fixture(scope="module")
def bare() -> Iterator[Peer]:
    peer = Peer("bare")
    yield peer
    peer.close()


@pytest.fixture(scope="module")
def llama() -> Iterator[Peer]:
    peer = Peer("llama")
    yield peer
    peer.close()


def story(tokens: int, seed: int) -> str:
    """A prompt of about so many tokens that begins differently for every seed, so that nothing is reused."""
    words = ["river", "mill", "stone", "letter", "garden", "winter", "lamp", "bridge", "song", "harbour"]
    chosen = random.Random(seed)
    text = " ".join(chosen.choice(words) for _ in range(tokens - 60))
    return f"{seed} {text}\nWrite a very long story with these words and go on for many pages."


def whole(prompt: str) -> str:
    return f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n"


def test_decode_against_the_bare_loop_and_the_high_level_class(engine: Engine, bare: Peer, llama: Peer) -> None:
    against_bare: list[float] = []
    against_llama: list[float] = []
    rates: list[float] = []
    seed = 0
    while len(rates) < ROUNDS:
        seed += 1
        prompt = story(512, seed)
        results = {}
        if engine.run(prompt, 128)["tokens"]["output"] < 128:
            continue  # the model had nothing more to say
        engine.run("Forget it.", 1)
        peers = ["ours", "bare", "llama"]
        random.Random(seed).shuffle(peers)
        for peer in peers:
            if peer == "ours":
                results[peer] = engine.run(prompt, 128)
                assert results[peer]["tokens"]["output"] == 128
                assert results[peer]["tokens"]["reused"] < 60
            elif peer == "bare":
                results[peer] = bare.run(text=whole(prompt), tokens=128)
            else:
                results[peer] = llama.run(messages=[{"role": "user", "content": prompt}], tokens=128)
        assert results["bare"]["prompt"] == results["ours"]["tokens"]["prompt"]
        ours = results["ours"]["rates"]["decode_tps"]
        rates.append(ours)
        against_bare.append(ours / results["bare"]["decode_tps"])
        against_llama.append(ours / results["llama"]["decode_tps"])
    median = statistics.median(against_bare)
    say(f"decode / bare loop at {statistics.median(rates):.1f} tok/s", f"{median:.3f}", ">= 0.97", median >= 0.97)
    median = statistics.median(against_llama)
    say("decode / Llama.create_chat_completion", f"{median:.3f}", ">= 1.00", median >= 1.0)


@pytest.mark.parametrize("length", [512, 2000])
def test_prefill_against_the_bare_loop(engine: Engine, bare: Peer, length: int) -> None:
    ratios, rates = [], []
    for seed in range(ROUNDS):
        prompt = story(length, 100 + seed)
        if seed % 2:
            theirs = bare.run(text=whole(prompt), tokens=1)
            ours = engine.run(prompt, 1)
        else:
            ours = engine.run(prompt, 1)
            theirs = bare.run(text=whole(prompt), tokens=1)
        rates.append(ours["rates"]["prefill_tps"])
        ratios.append(rates[-1] / theirs["prefill_tps"])
    median = statistics.median(ratios)
    name = f"prefill of {length} / bare loop at {statistics.median(rates):.0f} tok/s"
    say(name, f"{median:.3f}", ">= 0.97", median >= 0.97)


def test_what_the_first_token_waits_for_besides_the_prefill(engine: Engine) -> None:
    around, second_turns = [], []
    for seed in range(5):
        chat = engine.session.open_chat()
        sampler = Sampler(temperature=0.0, max_tokens=8)
        first = engine.session.ask(chat, story(2000, 200 + seed), sampler=sampler)
        assert engine.session.wait(first, 300)
        one = contract(engine.session.state, first)
        second = engine.session.ask(chat, "And then?", sampler=sampler)
        assert engine.session.wait(second, 300)
        two = contract(engine.session.state, second)
        around.append(one["ttft_ms"] - one["phases_ms"]["prefill"])
        second_turns.append(two["ttft_ms"] / one["ttft_ms"])
    median = statistics.median(around)
    say("TTFT - prefill, warm, 2,000-token prompt", f"{median:.1f} ms", "< 8 ms", median < 8)
    median = statistics.median(second_turns)
    say("TTFT of a second turn / first, 2,000-token history", f"{median:.3f}", "<= 0.05", median <= 0.05)


def test_how_fast_a_stop_acts(engine: Engine) -> None:
    """From the call of `stop` to the fact of the end, as the session's user sees it."""
    for phase, prompt_tokens, moments_s in (
        ("a 4,000-token prefill", 3900, (0.02, 0.3, 0.7, 1.1, 1.9, 2.3, 3.7, 5.1)),
        ("decode", 300, (0.0, 0.005, 0.05, 0.123, 0.2, 0.31, 0.4)),
    ):
        took_ms = []
        for seed, moment_s in enumerate(moments_s):
            sampler = Sampler(temperature=1.0, seed=seed)
            answer = engine.session.ask(engine.session.open_chat(), story(prompt_tokens, 300 + seed), sampler=sampler)
            while phase == "decode" and not engine.session.state.answers[answer].tokens.count:
                time.sleep(0.002)
            time.sleep(moment_s)
            stopped_at = time.perf_counter()
            engine.session.stop(answer)
            assert engine.session.wait(answer, 10)
            took_ms.append((time.perf_counter() - stopped_at) * 1e3)
            state = engine.session.state.answers[answer]
            assert state.ended is not None
            assert state.ended.finish_reason in ("cancelled", "stop")
            assert (state.tokens.count > 0) == (phase == "decode")
        value = f"{statistics.median(took_ms):.0f} ms, worst {max(took_ms):.0f}"
        say(f"stop in {phase}", value, "<= 250", max(took_ms) <= 250)


def test_how_fast_a_stop_acts_during_a_load(tmp_path: Path) -> None:
    took_ms = []
    for _ in range(5):
        recorder = Recorder()
        session = Session(options=options(), on_fact=recorder)
        session.use_model(examine(starter()))
        answer = session.ask(session.open_chat(), "Hello", sampler=Sampler())
        recorder.wait_for(LoadStarted)
        stopped_at = time.perf_counter()
        session.stop(answer)
        assert session.wait(answer, 10)
        took_ms.append((time.perf_counter() - stopped_at) * 1e3)
        session.close()
    say("stop during a load", f"worst {max(took_ms):.0f} ms", "<= 500", max(took_ms) <= 500)


def test_how_long_version_takes() -> None:
    script = str(Path(sys.executable).with_name("homeai"))
    took_s = []
    for _ in range(7):
        began = time.perf_counter()
        subprocess.run([script, "--version"], check=True, capture_output=True)
        took_s.append(time.perf_counter() - began)
    median = statistics.median(took_s)
    say("homeai --version", f"{median * 1e3:.0f} ms", "<= 250 ms", median <= 0.25)
