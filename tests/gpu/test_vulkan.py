"""Where a model really goes with a GPU backend: all layers, ten, two devices, the cache in main memory, no device.

The library of the backend is loaded into the installed CPU build, in the worker, as it would be at a user's home.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from homeai.events import AnyFact, LoadEnded, Notice, Placement, Sampler
from homeai.models.modelfile import examine
from homeai.session.session import Session
from tests.engine.rig import options
from tests.models.shapes import write_shape

pytestmark = pytest.mark.system

LAYERS = 12
PATIENCE_S = 240.0
"""The driver compiles the backend's programs at their first use: half a minute, here with a rival for the cores."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    return write_shape(folder / "m.gguf", kind="F16", width=256, widest=768, heads=4, layers=LAYERS, vocabulary=2000)


@pytest.fixture
def gpus(vulkan_folder: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Sets how many devices there are: by `GGML_VK_VISIBLE_DEVICES`, without which the driver's is left out."""
    monkeypatch.setenv("HOMEAI_BACKENDS_DIR", str(vulkan_folder))
    monkeypatch.setenv("GGML_VK_VISIBLE_DEVICES", "0")
    return monkeypatch


class Loaded:
    """What a load told."""

    def __init__(self, path: Path, *, tokens: int = 0, **changes: Any) -> None:
        facts: list[AnyFact] = []
        wanted = {"gpu_layers": -1, "context": 512, "flash_attention": False}
        session = Session(options=options(**(wanted | changes)), on_fact=facts.append)
        try:
            session.use_model(examine(path))
            chat, sampler = session.open_chat(), Sampler(temperature=0.0, max_tokens=max(1, tokens))
            assert session.wait(session.ask(chat, "Hello", sampler=sampler), PATIENCE_S)
        finally:
            session.close()
        self.written = session.state.answers[1].tokens.count
        self.fault = session.state.answers[1].ended.fault if session.state.answers[1].ended else None
        found = [fact for fact in facts if isinstance(fact, LoadEnded)]
        assert found, self.fault
        self.ended = found[0]
        self.engine = found[0].engine
        self.devices = {device.name: device for device in self.engine.devices}
        self.codes = [fact.code for fact in facts if isinstance(fact, Notice)]
        self.notices = [fact for fact in facts if isinstance(fact, Notice)]

    def kv(self, name: str) -> int:
        return self.devices.get(name, Placement(name=name)).kv_bytes or 0


def test_all_layers(gpus: pytest.MonkeyPatch, model: Path) -> None:
    loaded = Loaded(model, tokens=3)
    assert loaded.fault is None
    assert loaded.written == 3
    assert (loaded.engine.layers_offloaded, loaded.engine.layers_total) == (LAYERS + 1, LAYERS + 1)
    assert loaded.devices["Vulkan0"].layers == LAYERS
    assert loaded.kv("Vulkan0") > 0
    assert loaded.kv("CPU") == 0
    assert loaded.codes == [], "a load as it should be raises nothing"


def test_the_estimate_is_close_on_the_gpu_too(gpus: pytest.MonkeyPatch, model: Path) -> None:
    loaded = Loaded(model, context=4096)
    guessed = {place.name: place.held_bytes for place in loaded.engine.estimated}
    real = {name: device.held_bytes for name, device in loaded.devices.items()}
    assert guessed["GPU"] == pytest.approx(real["Vulkan0"], rel=0.1), (loaded.engine.estimated, loaded.engine.devices)
    assert sum(guessed.values()) == pytest.approx(sum(real.values()), rel=0.1)


def test_some_layers_are_told_by_their_real_number(gpus: pytest.MonkeyPatch, model: Path) -> None:
    loaded = Loaded(model, gpu_layers=10, gpu_asked=True)
    # The output counts as the last layer.
    assert (loaded.devices["Vulkan0"].layers, loaded.devices["CPU"].layers) == (9, LAYERS - 9)
    assert loaded.engine.layers_offloaded == 10
    assert loaded.kv("Vulkan0") / loaded.kv("CPU") == pytest.approx(9 / (LAYERS - 9), rel=0.02)
    assert loaded.codes == ["partial_offload"]
    assert loaded.notices[0].message.startswith(f"10 of {LAYERS + 1} layers are on the GPU")


def test_two_devices_share_the_layers(gpus: pytest.MonkeyPatch, model: Path) -> None:
    gpus.setenv("GGML_VK_VISIBLE_DEVICES", "0,0")
    loaded = Loaded(model)
    on = [loaded.devices[name].layers for name in ("Vulkan0", "Vulkan1")]
    assert sum(on) == LAYERS
    assert min(on) > 0
    assert loaded.kv("Vulkan0") > 0
    assert loaded.kv("Vulkan1") > 0
    assert loaded.codes == []


def test_a_cache_in_main_memory_is_told(gpus: pytest.MonkeyPatch, model: Path) -> None:
    loaded = Loaded(model, kv_offload=False)
    assert loaded.kv("CPU") > 0
    assert loaded.kv("Vulkan0") == 0
    assert loaded.engine.layers_offloaded == LAYERS + 1
    assert loaded.codes == ["kv_on_cpu"]


def test_a_type_of_cache_that_the_gpu_cannot_attend_over_is_told(gpus: pytest.MonkeyPatch, model: Path) -> None:
    loaded = Loaded(model, kv_type_k="iq4_nl")
    assert loaded.engine.layers_offloaded == LAYERS + 1
    assert loaded.kv("Vulkan0") > 0
    assert loaded.codes == ["attention_on_cpu"]
    assert "a cache of iq4_nl/f16" in loaded.notices[0].help


def test_asked_for_the_gpu_and_none_is_visible(gpus: pytest.MonkeyPatch, model: Path) -> None:
    gpus.setenv("GGML_VK_VISIBLE_DEVICES", "")
    loaded = Loaded(model, gpu_asked=True)
    assert loaded.engine.layers_offloaded == 0
    assert loaded.codes == ["no_gpu_visible"]
    assert "homeai doctor" in loaded.notices[0].help


def test_no_layers_asked_for_uses_no_gpu_and_says_nothing(gpus: pytest.MonkeyPatch, model: Path) -> None:
    loaded = Loaded(model, gpu_layers=0, gpu_asked=True)
    assert set(loaded.devices) == {"CPU"}
    assert loaded.codes == []


def test_the_doctor_sees_the_gpu_and_that_it_is_used(gpus: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-m", "homeai", "doctor", "--json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
        env={**os.environ, "HOMEAI_STATE_DIR": str(tmp_path)},
    )
    found = json.loads(told.stdout)
    gpu = next(check for check in found["checks"] if check["id"] == "gpu")
    assert any(device["name"] == "Vulkan0" for device in found["devices"])
    assert "vulkan" in found["build"]["backends"]
    assert found["build"]["gpu_offload"] is True
    # Where the driver has to compile first, four seconds are not enough, and the doctor says so.
    assert gpu["status"] == "ok" or "whether it can use it" in gpu["message"]
