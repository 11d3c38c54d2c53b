"""From flags, environment, file, measurements and defaults to one value a setting, each with its origin.

The settings file is flat TOML, `key = value` with the keys of the table:

    model = "qwen3-4b"
    folders = ["~/models"]
    context = "8k"
    threads = 4

One section may follow, `[keys]`: see `homeai.settings.keys`.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from homeai.errors import UsageError, reason_of
from homeai.settings import tuned
from homeai.settings.keys import SECTION as KEYS
from homeai.settings.keys import WrittenKeys, read_keys
from homeai.settings.kinds import Value, did_you_mean
from homeai.settings.table import BY_KEY, SETTINGS, Machine, Setting
from homeai.targets import Targets

if TYPE_CHECKING:
    from homeai.events import Ceilings, Sampler
    from homeai.options import EngineOptions

Source = Literal["flag", "environment", "file", "measured", "default"]

_MEASURED = "measured on this machine"


@dataclass(frozen=True, slots=True)
class Resolved:
    """A value and where it comes from; `origin` says it in words: `--threads`, `config.toml line 3`, `2 cores`."""

    value: Value
    source: Source
    origin: str


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, each definite. `warnings` are sentences for the user about values that are odd but allowed."""

    machine: Machine
    resolved: Mapping[str, Resolved]
    warnings: tuple[str, ...] = ()
    keys: Mapping[str, WrittenKeys] = field(default_factory=dict)
    """What the settings file says of the dashboard's keys, by action, as it was written."""

    def value(self, key: str) -> Any:
        """The value in the setting's own type; the table says which. An unknown key raises KeyError."""
        return self.resolved[key].value

    def origin(self, key: str) -> str:
        """Where the value comes from, in words."""
        return self.resolved[key].origin

    def shown(self, key: str) -> str:
        """The value as it would be written on the command line; empty for one that is not set."""
        return BY_KEY[key].kind.show(self.value(key))

    def with_measured(
        self, values: Mapping[str, object], origins: Mapping[str, str] = MappingProxyType({})
    ) -> Settings:
        """The same with measured values in place of defaults, as far as they make sense beside what was chosen.

        `origins` has more to say of where single values come from than that they were measured.
        """
        given = {key: found for key, found in self.resolved.items() if found.source not in ("measured", "default")}
        settings = _complete(given, self.machine)
        for key, value in values.items():
            setting = BY_KEY.get(key)
            if setting is None or key in given:
                continue
            try:
                measured = Resolved(setting.kind.from_toml(value), "measured", origins.get(key, _MEASURED))
                settings = _complete(given | {key: measured}, self.machine)
            except (ValueError, UsageError):
                continue  # not a value of this setting, or one that contradicts what the user chose
            given[key] = measured
        return replace(settings, warnings=self.warnings, keys=self.keys)

    def with_defaults(self, values: Mapping[str, tuple[Value, str]]) -> Settings:
        """The same with other defaults, each with its reason: what one front end wants otherwise than the rest."""
        changed = {
            key: Resolved(value, "default", f"default: {reason}")
            for key, (value, reason) in values.items()
            if self.resolved[key].source == "default"
        }
        return replace(self, resolved={**self.resolved, **changed})

    def for_model(self, path: Path, size_bytes: int, state_dir: Path) -> Settings:
        """The same with what was measured on this machine, with the installed build, for this model."""
        file = state_dir / tuned.FILE_NAME
        if not file.exists():
            return self
        found = tuned.measured(file, self.measured_place(path, size_bytes))
        return self.with_measured(found.values, found.origins)

    def ceilings(self, path: Path, size_bytes: int, state_dir: Path) -> Ceilings | None:
        """What `homeai calibrate` found for a model here, sound or not; None where it was not run."""
        file = state_dir / tuned.FILE_NAME
        return tuned.ceilings(file, self.measured_place(path, size_bytes)) if file.exists() else None

    def measured_place(self, path: Path, size_bytes: int) -> tuned.Place:
        """What a measurement of a model under these settings is filed under."""
        return tuned.Place(
            self.machine.name, tuned.build_name(self.value("backend")), tuned.model_name(path, size_bytes)
        )

    def engine_options(self, context_trained: int | None = None) -> EngineOptions:
        """What the engine is asked for. A default context is not made longer than the model was trained with."""
        from homeai.options import EngineOptions

        context = self.value("context")
        if context_trained and self.resolved["context"].source == "default":
            context = min(context, context_trained)
        return EngineOptions(
            gpu_layers=self.value("gpu_layers"),
            gpu_asked=self.resolved["gpu_layers"].source not in ("default", "measured"),
            threads=self.value("threads"),
            threads_batch=self.value("threads_batch"),
            batch=self.value("batch"),
            ubatch=self.value("ubatch"),
            flash_attention={"auto": None, "on": True, "off": False}[self.value("flash_attention")],
            kv_type_k=self.value("kv_type_k"),
            kv_type_v=self.value("kv_type_v"),
            kv_offload=self.value("kv_offload"),
            context=context,
            sequences=self.value("sequences"),
            iteration_tokens=self.value("iteration_tokens"),
            decode_first=self.value("decode_first"),
        )

    def targets(self) -> Targets:
        """What the charts compare with."""
        return Targets(self.value("target_first_token"), self.value("target_gap"), self.value("target_reading"))

    def sampler(self, stop: tuple[str, ...] = ()) -> Sampler:
        """How tokens are chosen. `stop` are the strings that end this answer; they are no setting."""
        from homeai.events import Sampler

        return Sampler(
            temperature=self.value("temperature"),
            top_k=self.value("top_k"),
            top_p=self.value("top_p"),
            min_p=self.value("min_p"),
            repeat_penalty=self.value("repeat_penalty"),
            seed=self.value("seed"),
            max_tokens=self.value("max_tokens"),
            stop=stop,
        )


def resolve(
    flags: Mapping[str, object],
    environ: Mapping[str, str],
    toml_path: Path,
    machine: Machine,
    problems: list[UsageError] | None = None,
) -> Settings:
    """Resolve every setting: a flag wins over the environment, that over the file, that over a default.

    Flags are by key; texts are read as the command line writes them, None means not given. Raises `UsageError` for a
    value or a key that makes no sense, naming where it stands, what is accepted and what may have been meant. Where
    there is a list for `problems`, all of them are put there instead, and what they are about counts as not given.
    """
    found: list[UsageError] = []
    settings = _resolved(flags, environ, toml_path, machine, found)
    found.sort(key=lambda problem: _line(problem, toml_path))
    if problems is not None:
        problems += found
    elif found:
        raise found[0] if len(found) == 1 else _with_others(found)
    return settings


def _with_others(problems: list[UsageError]) -> UsageError:
    """The first of several, and where all are told."""
    first, others = problems[0].message, len(problems) - 1
    sentence = first if first.endswith((".", "?")) else f"{first}."
    more = "is one more mistake" if others == 1 else f"are {others} more mistakes"
    return UsageError(sentence, code="usage", help=f"There {more}: `homeai config` lists them all.")


def _line(problem: UsageError, path: Path) -> int:
    """The line of the file that it is about; 0 where it is about none."""
    match = re.match(rf"{re.escape(str(path))} line ([0-9]+):", problem.message)
    return int(match[1]) if match else 0


def _resolved(
    flags: Mapping[str, object],
    environ: Mapping[str, str],
    toml_path: Path,
    machine: Machine,
    problems: list[UsageError],
) -> Settings:
    unknown = sorted(set(flags) - set(BY_KEY))
    if unknown:
        raise UsageError(f'"{unknown[0]}" is no setting{did_you_mean(unknown[0], BY_KEY)}', code="usage")
    written, text = _read_toml(toml_path, problems)
    given: dict[str, Resolved] = {}
    for setting in SETTINGS:
        try:
            found = (
                _from_flag(setting, flags.get(setting.key))
                or _from_environment(setting, environ.get(setting.environment, ""))
                or _from_file(setting, written, text, toml_path)
            )
        except UsageError as problem:
            problems.append(problem)
        else:
            if found:
                given[setting.key] = found
    settings = _filled(given, machine)
    problems += _contradictions(settings.resolved)
    keys = read_keys(written.get(KEYS, {}), text, str(toml_path), BY_KEY, problems)
    return replace(settings, warnings=settings.warnings + _odd_variables(environ, settings), keys=keys)


def _complete(given: Mapping[str, Resolved], machine: Machine) -> Settings:
    """Fill in defaults, and look at the whole: raises `UsageError`."""
    settings = _filled(given, machine)
    for problem in _contradictions(settings.resolved):
        raise problem
    return settings


def _filled(given: Mapping[str, Resolved], machine: Machine) -> Settings:
    """Fill in defaults, in the table's order."""
    resolved: dict[str, Resolved] = {}
    values: dict[str, Value] = {}
    for setting in SETTINGS:
        found = given.get(setting.key)
        if found is None:
            value, reason = setting.default_on(machine, values)
            found = Resolved(value, "default", f"default: {reason}" if reason else "default")
        resolved[setting.key] = found
        values[setting.key] = found.value
    return Settings(machine, resolved, _thread_warnings(resolved, machine))


def _from_flag(setting: Setting, given: object) -> Resolved | None:
    if given is None:
        return None
    return Resolved(_read(setting, given, setting.flag), "flag", setting.flag)


def _from_environment(setting: Setting, text: str) -> Resolved | None:
    # Set but empty means not set: there is no other way to unset a variable for one command on Windows.
    if not text:
        return None
    return Resolved(_read(setting, text, setting.environment), "environment", setting.environment)


def _from_file(setting: Setting, written: Mapping[str, object], text: str, path: Path) -> Resolved | None:
    if setting.key not in written:
        return None
    place = _place(path, text, setting.key)
    try:
        return Resolved(setting.kind.from_toml(written[setting.key]), "file", place)
    except ValueError as problem:
        raise UsageError(f"{place}: {setting.key} {problem}", code="usage") from problem


def _read(setting: Setting, given: object, name: str) -> Value:
    try:
        return setting.kind.from_text(given) if isinstance(given, str) else setting.kind.from_toml(given)
    except ValueError as problem:
        raise UsageError(f"{name} {problem}", code="usage") from problem


def _read_toml(path: Path, problems: list[UsageError]) -> tuple[Mapping[str, object], str]:
    """What the file says, and its text; a file that cannot be read says nothing."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return {}, ""
    except (OSError, UnicodeDecodeError) as problem:
        problems.append(UsageError(f"Cannot read the settings in {path}: {reason_of(problem)}", code="usage"))
        return {}, ""
    try:
        written = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        problems.append(UsageError(f"{path} is not valid TOML: {problem}", code="usage"))
        return {}, ""
    for key, value in written.items():
        if key in BY_KEY or key == KEYS:
            continue
        place = _place(path, text, key)
        if isinstance(value, dict):
            message = f"{place}: [{key}] is a section; settings stand without sections"
            problems.append(UsageError(message, code="usage"))
            continue
        meant = did_you_mean(key.replace("-", "_").lower(), BY_KEY) or "."
        message = f'{place}: "{key}" is no setting{meant}'
        problems.append(UsageError(message, code="usage", help="`homeai config` lists all there are."))
    return written, text


def _place(path: Path, text: str, key: str) -> str:
    """The file and line of a key; tomllib does not tell lines, and a flat file makes them easy to find."""
    start = re.compile(rf"""\s*\[*\s*["']?{re.escape(key)}["']?\s*[=.\]]""")
    for number, line in enumerate(text.splitlines(), start=1):
        if start.match(line):
            return f"{path} line {number}"
    return str(path)


def _contradictions(resolved: Mapping[str, Resolved]) -> Iterator[UsageError]:
    batch, ubatch = resolved["batch"], resolved["ubatch"]
    assert isinstance(batch.value, int)
    assert isinstance(ubatch.value, int)
    if ubatch.value > batch.value:
        yield UsageError(
            f"ubatch {ubatch.value} ({ubatch.origin}) is more than batch {batch.value} ({batch.origin}).",
            code="usage",
            help="A batch is computed in micro-batches, so ubatch can be batch at most.",
        )
    values, attention = resolved["kv_type_v"], resolved["flash_attention"]
    if attention.value == "off" and values.value not in ("f32", "f16", "bf16"):
        yield UsageError(
            f"kv_type_v {values.value} ({values.origin}) needs flash attention, which is off ({attention.origin}).",
            code="usage",
            help="Set flash_attention to auto or on, or kv_type_v to f16.",
        )


def _thread_warnings(resolved: Mapping[str, Resolved], machine: Machine) -> tuple[str, ...]:
    cores = machine.cores
    return tuple(
        f"{found.value} threads ({found.origin}) are more than the {cores.usable} that can run at once here"
        f" ({cores.reason}): they will wait for each other."
        for key in ("threads", "threads_batch")
        if (found := resolved[key]).source != "default" and isinstance(found.value, int) and found.value > cores.usable
    )


def _odd_variables(environ: Mapping[str, str], settings: Settings) -> tuple[str, ...]:
    """Variables that begin as ours do and mean nothing; an engine that is not ours may have some of its own."""
    import difflib

    from homeai.places import VARIABLES

    known = [*(setting.environment for setting in SETTINGS), *VARIABLES]
    is_own = settings.resolved["backend"].source == "default"
    warnings = []
    for name in sorted(environ):
        if not name.startswith("HOMEAI_") or name in known:
            continue
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.85)
        if close:
            warnings.append(f"{name} is no setting and was ignored. Did you mean {close[0]}?")
        elif is_own:
            warnings.append(f"{name} is no setting and was ignored. homeai config lists those that there are.")
    return tuple(warnings)


def this_machine() -> Machine:
    """What this machine offers to this process now."""
    from homeai.platform import cpu_name, usable_cores

    cores = usable_cores()
    return Machine(cores, f"{cpu_name()}, {cores.reason}")


def load(flags: Mapping[str, object], problems: list[UsageError] | None = None) -> Settings:
    """Resolve with this process's environment, the user's settings file and this machine, as `resolve` does."""
    from homeai.places import config_file

    return resolve(flags, os.environ, config_file(), this_machine(), problems)
