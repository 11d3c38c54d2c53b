"""Every setting there is, in one table: its key, what it takes, its default with the reason, and its help.

A setting has one name everywhere: the key `gpu_layers` in the settings file is the flag `--gpu-layers` and the
environment variable `HOMEAI_GPU_LAYERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from homeai.platform import Cores
from homeai.settings.kinds import Choice, Folders, Kind, Real, Text, Value, Whole, YesNo
from homeai.targets import USUAL_TARGETS

KV_TYPES = ("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")
"""The number formats in which llama.cpp can keep keys and values."""

THEMES = (
    "homeai-dark", "homeai-light", "homeai-terminal",
    "ansi-dark", "ansi-light", "atom-one-dark", "atom-one-light", "catppuccin-frappe", "catppuccin-latte",
    "catppuccin-macchiato", "catppuccin-mocha", "dracula", "flexoki", "gruvbox", "monokai", "nord", "rose-pine",
    "rose-pine-dawn", "rose-pine-moon", "solarized-dark", "solarized-light", "textual-dark", "textual-light",
    "tokyo-night",
)  # fmt: skip
"""Our own, then those that Textual brings; here by name, because no command but the dashboard loads Textual."""

CONTEXT_DEFAULT = 4096
"""Tokens: a long talk, at 90 to 512 MiB of cache for models of 135 million to 8 billion weights."""

DASHBOARD_SEQUENCES = 4
"""Answers that the dashboard writes beside each other: more open chats at work than that are rare at home. Their tokens
share the cells of one context, so that four sequences take 0.7 MiB more than one (the starter model, context 4,096)."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What defaults depend on. `name` tells one machine from another in the file of measured defaults."""

    cores: Cores
    name: str


Default = Callable[[Machine, Mapping[str, Value]], tuple[Value, str]]
"""Computes a default and its reason from the machine and the settings that stand before it in the table."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. `help` completes the flag in a help text; `default` is a value or a provider with its reason."""

    key: str
    kind: Kind
    default: Value | Default
    help: str
    group: Literal["model", "chat", "engine", "sampling", "dashboard", "program"]
    placeholder: str = "N"
    """What the help shows for the flag's value; empty where the bare flag means yes."""

    @property
    def flag(self) -> str:
        """The command line's name for it."""
        return "--" + self.key.replace("_", "-")

    @property
    def environment(self) -> str:
        """The environment variable's name for it."""
        return "HOMEAI_" + self.key.upper()

    def default_on(self, machine: Machine, before: Mapping[str, Value]) -> tuple[Value, str]:
        """The default value and why it is that; the reason is empty where the value speaks for itself."""
        return self.default(machine, before) if callable(self.default) else (self.default, "")


def _threads(machine: Machine, _before: Mapping[str, Value]) -> tuple[Value, str]:
    return machine.cores.usable, machine.cores.reason


def _threads_batch(machine: Machine, before: Mapping[str, Value]) -> tuple[Value, str]:
    threads = before["threads"]
    assert isinstance(threads, int)
    return (threads, "same as threads") if threads <= machine.cores.usable else _threads(machine, before)


def _ubatch(_machine: Machine, before: Mapping[str, Value]) -> tuple[Value, str]:
    batch = before["batch"]
    assert isinstance(batch, int)
    return (512, "") if batch >= 512 else (batch, "not more than batch")


def _sequences(_machine: Machine, _before: Mapping[str, Value]) -> tuple[Value, str]:
    return 1, f"{DASHBOARD_SEQUENCES} in the dashboard"


SETTINGS: tuple[Setting, ...] = (
    Setting("model", Text("a path or a name"), None, "the model: a GGUF file or a name that `homeai models` lists",
            "model", "MODEL"),
    Setting("folders", Folders(), (), "folders with GGUF files, beside the places where other programs keep theirs",
            "model", "FOLDERS"),
    Setting("system", Text(pattern=r"(?s).*"), None, "how the model should behave (the system message)",
            "chat", "TEXT"),
    Setting("context", Whole(0, 16 * 1024 * 1024, {"trained": 0}, kilo=True), CONTEXT_DEFAULT,
            "tokens that prompt and answer may fill together, such as 8k; 0 is what the model was trained with",
            "engine"),
    Setting("gpu_layers", Whole(-1, 10_000, {"all": -1}), -1, "layers to put on the GPU; all, or 0 for none",
            "engine"),
    Setting("threads", Whole(1, 1024), _threads, "threads that write the answer", "engine"),
    Setting("threads_batch", Whole(1, 1024), _threads_batch, "threads that read the prompt", "engine"),
    Setting("batch", Whole(1, 65_536), 2048, "prompt tokens handed to the engine at once, at most", "engine"),
    Setting("ubatch", Whole(1, 65_536), _ubatch, "prompt tokens computed at once, at most", "engine"),
    Setting("flash_attention", Choice(("auto", "on", "off")), "auto", "flash attention: auto, on or off", "engine",
            "WHEN"),
    Setting("kv_type_k", Choice(KV_TYPES), "f16", "number format of the cached keys, such as f16 or q8_0", "engine",
            "TYPE"),
    Setting("kv_type_v", Choice(KV_TYPES), "f16", "number format of the cached values", "engine", "TYPE"),
    Setting("kv_offload", YesNo(), True, "keep the cache on the GPU beside its layers: yes; or in main memory: no",
            "engine", "YES|NO"),
    Setting("sequences", Whole(1, 256), _sequences,
            f"answers that can be written at the same time; the dashboard takes {DASHBOARD_SEQUENCES}", "engine"),
    Setting("iteration_tokens", Whole(0, 65_536, {"auto": 0}), 0,
            "tokens computed in one round; auto follows the speed", "engine"),
    Setting("decode_first", YesNo(), True, "answers under way go before new prompts: yes or no", "engine", "YES|NO"),
    Setting("temperature", Real(0, 10), 0.8, "how freely the model chooses; 0 always takes the likeliest token",
            "sampling"),
    Setting("top_k", Whole(0, 1_000_000), 40, "choose among the K likeliest tokens; 0 among all", "sampling"),
    Setting("top_p", Real(0, 1), 0.95, "choose among the likeliest tokens that make up this share", "sampling"),
    Setting("min_p", Real(0, 1), 0.05, "leave out tokens less likely than this share of the likeliest", "sampling"),
    Setting("repeat_penalty", Real(0.01, 10), 1.0, "make repeated tokens less likely; 1 is off", "sampling"),
    # 2**32 - 1 is llama.cpp's own word for a random seed.
    Setting("seed", Whole(0, 2**32 - 2, {"random": None}), None, "makes the choices repeatable", "sampling"),
    Setting("max_tokens", Whole(1, 2**31 - 1, {"unlimited": None}), None, "end the answer after this many tokens",
            "sampling"),
    Setting("theme", Choice(THEMES), None, "colours of the dashboard", "dashboard", "NAME"),
    Setting("no_color", YesNo(), False, "the dashboard without colours, as with NO_COLOR in the environment",
            "dashboard", ""),
    Setting("ascii", YesNo(), False, "the dashboard in ASCII characters only", "dashboard", ""),
    Setting("record", Choice(("full", "no-text", "off")), "full",
            "what is recorded of a session, on this machine only: full, no-text (figures without words) or off",
            "program", "WHAT"),
    Setting("target_first_token", Whole(1, 3_600_000, {"off": None}), USUAL_TARGETS.first_token_ms,
            "milliseconds in which a first token feels immediate, a line in the charts; or off", "dashboard", "MS"),
    Setting("target_gap", Whole(1, 60_000, {"off": None}), USUAL_TARGETS.gap_ms,
            "milliseconds a token with which text flows, a line in the charts; or off", "dashboard", "MS"),
    Setting("target_reading", Whole(1, 1000, {"off": None}), USUAL_TARGETS.reading_tps,
            "tokens a second that people read with comfort, a line in the charts; or off", "dashboard"),
    Setting("backend", Text("the name of a Python module", r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"),
            "homeai.engine.llamacpp", "the engine's Python module", "program", "MODULE"),
)  # fmt: skip
"""The order is that of `homeai config`; a default may build on what stands before it."""

BY_KEY: Mapping[str, Setting] = {setting.key: setting for setting in SETTINGS}
