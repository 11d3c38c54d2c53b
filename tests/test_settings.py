"""Settings: which place wins, what is refused and how, and what the engine is asked for in the end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeai.errors import ExitCode, UsageError
from homeai.platform import Cores
from homeai.settings import BY_KEY, SETTINGS, Machine, Setting, Settings, resolve, tuned
from homeai.settings.kinds import Choice
from homeai.targets import NO_TARGETS, USUAL_TARGETS, Targets

MACHINE = Machine(Cores(6, "6 physical cores"), "Test CPU, 6 physical cores")
NOWHERE = Path("no-such-folder") / "config.toml"

EXAMPLES: dict[str, tuple[str, str, object]] = {
    # a text as on the command line, the same in TOML, the value it means
    "model": ("qwen3-4b", '"qwen3-4b"', "qwen3-4b"),
    "folders": ("/a", '["/a"]', ("/a",)),
    "system": ("Be brief.", '"Be brief."', "Be brief."),
    "context": ("8k", '"8k"', 8192),
    "gpu_layers": ("20", "20", 20),
    "threads": ("3", "3", 3),
    "threads_batch": ("2", "2", 2),
    "batch": ("1024", "1024", 1024),
    "ubatch": ("256", "256", 256),
    "flash_attention": ("on", '"on"', "on"),
    "kv_type_k": ("q8_0", '"q8_0"', "q8_0"),
    "kv_type_v": ("bf16", '"bf16"', "bf16"),
    "kv_offload": ("no", "false", False),
    "sequences": ("4", "4", 4),
    "iteration_tokens": ("128", "128", 128),
    "decode_first": ("no", "false", False),
    "temperature": ("0.5", "0.5", 0.5),
    "top_k": ("10", "10", 10),
    "top_p": ("0.5", "0.5", 0.5),
    "min_p": ("0.1", "0.1", 0.1),
    "repeat_penalty": ("1.1", "1.1", 1.1),
    "seed": ("7", "7", 7),
    "max_tokens": ("128", "128", 128),
    "theme": ("nord", '"nord"', "nord"),
    "no_color": ("yes", "true", True),
    "ascii": ("yes", "true", True),
    "record": ("no-text", '"no-text"', "no-text"),
    "target_first_token": ("off", '"off"', None),
    "target_gap": ("20", "20", 20),
    "target_reading": ("7", "7", 7),
    "backend": ("tests.engine.scripted", '"tests.engine.scripted"', "tests.engine.scripted"),
}


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    def written(text: str) -> Path:
        path = tmp_path / "config.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return written


def resolved(flags: dict[str, object] | None = None, environ: dict[str, str] | None = None) -> Settings:
    return resolve(flags or {}, environ or {}, NOWHERE, MACHINE)


def test_every_setting_has_an_example() -> None:
    assert set(EXAMPLES) == set(BY_KEY)
    assert len(BY_KEY) == len(SETTINGS)


class TestPrecedence:
    @pytest.mark.parametrize("key", EXAMPLES)
    def test_each_place_wins_over_the_next(self, key: str, write: Callable[[str], Path]) -> None:
        text, toml, value = EXAMPLES[key]
        path = write(f"# a comment\n{key} = {toml}\n")
        setting = BY_KEY[key]
        default = resolve({}, {}, NOWHERE, MACHINE)
        assert default.value(key) != value
        assert default.resolved[key].source == "default"

        from_file = resolve({}, {}, path, MACHINE)
        assert (from_file.value(key), from_file.origin(key)) == (value, f"{path} line 2")

        path = write(f"{key} = {_other(key)}\n")
        from_environment = resolve({}, {setting.environment: text}, path, MACHINE)
        assert (from_environment.value(key), from_environment.origin(key)) == (value, setting.environment)

        other_environment = {setting.environment: _other(key).strip('[]"').replace("true", "yes")}
        from_flag = resolve({key: text}, other_environment, path, MACHINE)
        assert (from_flag.value(key), from_flag.origin(key)) == (value, setting.flag)

    def test_a_flag_that_was_not_given_and_an_empty_variable_are_no_values(self) -> None:
        settings = resolved({"threads": None}, {"HOMEAI_THREADS": ""})
        assert settings.resolved["threads"].source == "default"

    def test_measurements_win_over_defaults_only(self) -> None:
        settings = resolved({"threads": 3}).with_measured({"threads": 5, "flash_attention": "off"})
        assert (settings.value("threads"), settings.origin("threads")) == (3, "--threads")
        assert (settings.value("flash_attention"), settings.origin("flash_attention")) == (
            "off",
            "measured on this machine",
        )

    def test_a_measurement_yields_to_a_choice_it_contradicts(self) -> None:
        settings = resolved({"kv_type_v": "q8_0"}).with_measured({"flash_attention": "off", "threads": 5})
        assert (settings.value("flash_attention"), settings.value("threads")) == ("auto", 5)

    def test_new_measurements_replace_old_ones(self) -> None:
        settings = resolved().with_measured({"threads": 5}).with_measured({"batch": 1024})
        assert (settings.value("threads"), settings.value("batch")) == (6, 1024)

    @given(st.dictionaries(st.sampled_from([*BY_KEY, "other"]), st.none() | st.integers() | st.text() | st.booleans()))
    def test_nonsense_among_measurements_is_left_out(self, values: dict[str, object]) -> None:
        settings = resolved().with_measured({"kv_type_v": "f16", "flash_attention": "auto"} | values)
        for key in BY_KEY:
            assert settings.resolved[key].source in ("measured", "default")


def _other(key: str) -> str:
    """Another valid TOML value for the key."""
    return {
        "model": '"other"',
        "folders": '["/b"]',
        "system": '"Other."',
        "context": "512",
        "flash_attention": '"off"',
        "kv_type_k": '"q4_0"',
        "kv_type_v": '"q4_0"',
        "decode_first": "true",
        "kv_offload": "true",
        "theme": '"dracula"',
        "backend": '"other.backend"',
        "batch": "4096",
        "temperature": "1.5",
        "top_p": "0.75",
        "min_p": "0.25",
        "repeat_penalty": "1.5",
    }.get(key, "5")


class TestReading:
    @pytest.mark.parametrize("key", EXAMPLES)
    def test_what_is_shown_reads_back(self, key: str) -> None:
        for settings in (resolved(), resolved({key: EXAMPLES[key][0]})):
            if settings.value(key) is not None:
                assert BY_KEY[key].kind.from_text(settings.shown(key)) == settings.value(key)

    @pytest.mark.parametrize(
        ("text", "tokens"),
        [("8k", 8192), ("8K", 8192), ("1m", 1_048_576), ("0", 0), ("trained", 0), ("512", 512), ("32 k", 32_768)],
    )
    def test_context_in_thousands(self, text: str, tokens: int) -> None:
        assert resolved({"context": text}).value("context") == tokens

    @pytest.mark.parametrize("text", ["-1", "-8k", "8kb", "lots", "", "1e3", "99999999999", "64m", "8.5k", "٣"])
    def test_absurd_contexts_are_refused(self, text: str) -> None:
        with pytest.raises(UsageError, match="--context takes a whole number from 0 to 16777216"):
            resolved({"context": text})

    def test_special_words(self) -> None:
        settings = resolved({"gpu_layers": "all", "seed": "random", "max_tokens": "unlimited"})
        assert settings.value("gpu_layers") == -1
        assert settings.value("seed") is None
        assert settings.value("max_tokens") is None

    def test_words_stand_in_toml_too(self, write: Callable[[str], Path]) -> None:
        settings = resolve({}, {}, write('gpu_layers = "all"\ncontext = "trained"\n'), MACHINE)
        assert (settings.value("gpu_layers"), settings.value("context")) == (-1, 0)

    def test_folders_are_expanded_and_split_as_in_path(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import os

        monkeypatch.setenv("HOME", "/home/me")
        monkeypatch.setenv("USERPROFILE", "/home/me")
        settings = resolved(environ={"HOMEAI_FOLDERS": os.pathsep.join(["~/models", "/data", "~nobody-here/x"])})
        assert settings.value("folders") == (str(Path("/home/me/models")), "/data", "~nobody-here/x")

    def test_a_byte_order_mark_does_no_harm(self, tmp_path: Path) -> None:
        path = tmp_path / "config.toml"
        path.write_bytes(b"\xef\xbb\xbfthreads = 3\n")
        assert resolve({}, {}, path, MACHINE).value("threads") == 3

    @given(
        key=st.sampled_from([key for key in EXAMPLES if key not in ("model", "system", "theme", "folders")]),
        text=st.text(max_size=12) | st.integers().map(str) | st.floats().map(str),
    )
    def test_any_text_is_read_or_refused_with_what_is_accepted(self, key: str, text: str) -> None:
        kind = BY_KEY[key].kind
        try:
            value = kind.from_text(text)
        except ValueError as refused:
            problem = str(refused)
        else:
            problem = ""
            assert kind.from_text(kind.show(value)) == value
        assert problem == "" or problem.startswith(f"takes {kind.accepted}, not ")


class TestRefusals:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("thredas = 4\n", 'line 1: "thredas" is no setting. Did you mean "threads"?'),
            ("# x\n\nn_gpu_layer = -1\n", 'line 3: "n_gpu_layer" is no setting. Did you mean "gpu_layers"?'),
            ("gpu-layers = 3\n", 'line 1: "gpu-layers" is no setting. Did you mean "gpu_layers"?'),
            ("'Threads' = 3\n", 'line 1: "Threads" is no setting. Did you mean "threads"?'),
            ("xyzzy = 1\n", 'line 1: "xyzzy" is no setting'),
            ("threads = 2\n[engine]\nthreads = 4\n", "line 2: [engine] is a section; settings stand without sections"),
            ('threads = "4"\n', 'line 1: threads takes a whole number from 1 to 1024, not the text "4"'),
            ("threads = 2.0\n", "line 1: threads takes a whole number from 1 to 1024, not 2.0"),
            ("threads = true\n", "line 1: threads takes a whole number from 1 to 1024, not true"),
            ("threads = 0\n", "line 1: threads takes a whole number from 1 to 1024, not 0"),
            ("decode_first = 1\n", "line 1: decode_first takes yes or no (in the settings file true or false), not 1"),
            ("temperature = nan\n", "line 1: temperature takes a number from 0 to 10, not nan"),
            ("temperature = false\n", "line 1: temperature takes a number from 0 to 10, not false"),
            ("folders = [1]\n", "line 1: folders takes a list of folders, not a list"),
            ("model = 5\n", "line 1: model takes a path or a name, not 5"),
            (
                "context = -1\n",
                "line 1: context takes a whole number from 0 to 16777216 (also 8k, 1m) or trained, not -1",
            ),
            ('context = "8192"\n', 'or trained, not the text "8192"'),
            ("[threads]\na = 1\n", "line 1: threads takes a whole number from 1 to 1024, not a section"),
        ],
    )
    def test_the_file_says_where_what_and_what_instead(
        self, text: str, message: str, write: Callable[[str], Path]
    ) -> None:
        path = write(text)
        with pytest.raises(UsageError) as refused:
            resolve({}, {}, path, MACHINE)
        assert message in refused.value.message
        assert str(path) in refused.value.message
        assert refused.value.exit_code == ExitCode.USAGE

    def test_a_broken_file_says_where(self, write: Callable[[str], Path]) -> None:
        with pytest.raises(UsageError, match=r"not valid TOML: .*line 2"):
            resolve({}, {}, write("threads = 4\ncontext = = 3\n"), MACHINE)

    def test_a_file_in_another_encoding(self, tmp_path: Path) -> None:
        path = tmp_path / "config.toml"
        path.write_bytes(b'system = "gr\xfc\xdfe"\n')
        with pytest.raises(UsageError, match="Cannot read the settings"):
            resolve({}, {}, path, MACHINE)

    def test_a_folder_in_place_of_the_file(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="Cannot read the settings"):
            resolve({}, {}, tmp_path, MACHINE)

    def test_a_flag_and_a_variable_are_named(self) -> None:
        with pytest.raises(UsageError, match='--threads takes a whole number from 1 to 1024, not "many"'):
            resolved({"threads": "many"})
        with pytest.raises(UsageError, match="HOMEAI_TOP_P takes a number from 0 to 1, not"):
            resolved(environ={"HOMEAI_TOP_P": "95"})

    def test_a_choice_suggests_the_closest(self) -> None:
        with pytest.raises(UsageError, match=r'not "q8"\. Did you mean "q8_0"\?'):
            resolved({"kv_type_k": "q8"})

    @pytest.mark.parametrize("setting", [each for each in SETTINGS if isinstance(each.kind, Choice)], ids=str)
    def test_whoever_misspells_a_choice_is_told_all_there_are(
        self, setting: Setting, write: Callable[[str], Path]
    ) -> None:
        path = write(f'{setting.key} = "nope"\n')
        assert isinstance(setting.kind, Choice)
        for where, flags, environ, file in (
            (setting.flag, {setting.key: "nope"}, {}, NOWHERE),
            (setting.environment, {}, {setting.environment: "nope"}, NOWHERE),
            (f"{path} line 1: {setting.key}", {}, {}, path),
        ):
            with pytest.raises(UsageError) as refused:
                resolve(flags, environ, file, MACHINE)
            assert refused.value.message.startswith(f"{where} takes ")
            assert all(word in refused.value.message for word in setting.kind.words)
            assert refused.value.exit_code == ExitCode.USAGE

    def test_an_unknown_flag_key(self) -> None:
        with pytest.raises(UsageError, match=r'"thread" is no setting\. Did you mean "threads"\?'):
            resolved({"thread": 3})

    def test_a_micro_batch_larger_than_its_batch(self) -> None:
        with pytest.raises(UsageError, match=r"ubatch 512 \(--ubatch\) is more than batch 256 \(HOMEAI_BATCH\)"):
            resolved({"ubatch": 512}, {"HOMEAI_BATCH": "256"})

    @pytest.mark.parametrize(
        ("flags", "toml"),
        [
            ({"ubatch": 512, "batch": 256}, ""),
            ({"kv_type_v": "q8_0", "flash_attention": "off"}, ""),
            ({}, "xyzzy = 1\n"),
            ({}, "thredas = 1\n"),
        ],
        ids=str,
    )
    def test_a_refusal_with_advice_is_two_whole_sentences(
        self, write: Callable[[str], Path], flags: dict[str, object], toml: str
    ) -> None:
        """They are shown one behind the other in one line."""
        with pytest.raises(UsageError) as refused:
            resolve(flags, {}, write(toml), MACHINE)
        assert refused.value.help.endswith(".")
        assert refused.value.message.endswith((".", "?"))

    def test_quantised_values_without_flash_attention(self) -> None:
        with pytest.raises(UsageError, match=r"kv_type_v q8_0 .* needs flash attention, which is off"):
            resolved({"kv_type_v": "q8_0", "flash_attention": "off"})
        assert resolved({"kv_type_v": "q8_0"}).value("kv_type_v") == "q8_0"
        assert resolved({"kv_type_k": "q8_0", "flash_attention": "off"}).value("kv_type_k") == "q8_0"

    def test_a_mistyped_variable_is_told(self) -> None:
        settings = resolved(environ={"HOMEAI_THREDS": "4", "HOMEAI_STATE_DIR": "/x", "HOMEAI_BACKENDS_DIR": "/y"})
        assert settings.warnings == ("HOMEAI_THREDS is no setting and was ignored. Did you mean HOMEAI_THREADS?",)
        settings = resolved(environ={"HOMEAI_CONFG_DIR": "/x"})
        assert settings.warnings == ("HOMEAI_CONFG_DIR is no setting and was ignored. Did you mean HOMEAI_CONFIG_DIR?",)

    def test_a_variable_that_is_like_none_is_told_where_no_other_engine_may_know_it(self) -> None:
        environ = {"HOMEAI_NONSENSE": "1"}
        (warning,) = resolved(environ=environ).warnings
        assert warning == "HOMEAI_NONSENSE is no setting and was ignored. homeai config lists those that there are."
        assert resolved(environ=environ | {"HOMEAI_BACKEND": "another.engine"}).warnings == ()


class TestDefaults:
    @given(cores=st.integers(1, 512), given_threads=st.none() | st.integers(1, 1024))
    def test_no_default_asks_for_more_threads_than_cores(self, cores: int, given_threads: int | None) -> None:
        settings = resolve({"threads": given_threads}, {}, NOWHERE, Machine(Cores(cores, "reason"), "m"))
        for key in ("threads", "threads_batch"):
            if settings.resolved[key].source == "default":
                assert settings.value(key) <= cores

    def test_reasons(self) -> None:
        settings = resolved()
        assert settings.origin("threads") == "default: 6 physical cores"
        assert settings.origin("threads_batch") == "default: same as threads"
        assert settings.origin("batch") == "default"
        assert settings.warnings == ()

    def test_a_small_batch_brings_the_micro_batch_along(self) -> None:
        settings = resolved({"batch": 128})
        assert (settings.value("ubatch"), settings.origin("ubatch")) == (128, "default: not more than batch")

    def test_more_threads_than_cores_are_allowed_and_told_once(self) -> None:
        settings = resolved({"threads": 12})
        assert settings.value("threads") == 12
        assert len(settings.warnings) == 1
        assert "12 threads (--threads) are more than the 6 that can run at once here" in settings.warnings[0]


class TestTargets:
    def test_the_defaults_are_the_everyday_ones(self) -> None:
        assert resolved().targets() == USUAL_TARGETS == Targets(first_token_ms=200, gap_ms=10, reading_tps=10)

    def test_each_can_be_moved_or_turned_off(self) -> None:
        flags: dict[str, object] = {"target_first_token": "500", "target_gap": "off"}
        assert resolved(flags).targets() == Targets(500, None, 10)
        assert resolved({key: "off" for key in BY_KEY if key.startswith("target_")}).targets() == NO_TARGETS


class TestEngineOptions:
    @pytest.mark.parametrize(("word", "meant"), [("auto", None), ("on", True), ("off", False)])
    def test_flash_attention(self, word: str, meant: bool | None) -> None:
        assert resolved({"flash_attention": word}).engine_options().flash_attention is meant

    def test_all_engine_settings_arrive(self) -> None:
        flags: dict[str, object] = {s.key: EXAMPLES[s.key][0] for s in SETTINGS if s.group == "engine"}
        options = resolved(flags).engine_options()
        for name in options.__struct_fields__:
            meant = True if name in ("flash_attention", "gpu_asked") else EXAMPLES[name][2]
            assert getattr(options, name) == meant, name

    def test_only_a_number_of_gpu_layers_that_was_chosen_counts_as_asked_for(self) -> None:
        assert not resolved().engine_options().gpu_asked
        assert not resolved().with_measured({"gpu_layers": 5}).engine_options().gpu_asked
        assert resolved(environ={"HOMEAI_GPU_LAYERS": "all"}).engine_options().gpu_asked

    def test_the_default_context_is_not_longer_than_trained(self) -> None:
        assert resolved().engine_options().context == 4096
        assert resolved().engine_options(context_trained=2048).context == 2048
        assert resolved().engine_options(context_trained=131_072).context == 4096

    def test_a_context_that_was_asked_for_stays(self) -> None:
        assert resolved({"context": "8k"}).engine_options(context_trained=2048).context == 8192
        assert resolved({"context": 0}).engine_options(context_trained=2048).context == 0

    def test_all_sampling_settings_arrive(self) -> None:
        flags: dict[str, object] = {s.key: EXAMPLES[s.key][0] for s in SETTINGS if s.group == "sampling"}
        sampler = resolved(flags).sampler(stop=("END",))
        assert sampler.stop == ("END",)
        for name in set(sampler.__struct_fields__) - {"stop"}:
            assert getattr(sampler, name) == EXAMPLES[name][2], name


PLACE = {"machine": MACHINE.name, "build": tuned.build_name(), "model": "m.gguf 5"}


class TestMeasuredFile:
    def file(self, folder: Path, *entries: object, schema: int = 1) -> None:
        (folder / tuned.FILE_NAME).write_text(json.dumps({"schema": schema, "entries": entries}))

    def for_model(self, folder: Path, name: str = "m.gguf", size: int = 5) -> Settings:
        return resolved().for_model(Path("/models") / name, size, folder)

    def test_the_latest_entry_of_this_machine_build_and_model(self, tmp_path: Path) -> None:
        self.file(
            tmp_path,
            PLACE | {"values": {"threads": 2}},
            PLACE | {"values": {"threads": 4}},
            PLACE | {"machine": "other", "values": {"threads": 1}},
            PLACE | {"build": "other", "values": {"threads": 1}},
        )
        settings = self.for_model(tmp_path)
        assert (settings.value("threads"), settings.origin("threads")) == (4, "measured on this machine")

    @pytest.mark.parametrize(("name", "size"), [("other.gguf", 5), ("m.gguf", 6)])
    def test_another_model_has_none(self, tmp_path: Path, name: str, size: int) -> None:
        self.file(tmp_path, PLACE | {"values": {"threads": 2}})
        assert self.for_model(tmp_path, name, size).resolved["threads"].source == "default"

    def test_no_file(self, tmp_path: Path) -> None:
        assert self.for_model(tmp_path).resolved["threads"].source == "default"

    @pytest.mark.parametrize(
        "content", [b"", b"{", b"[]", b"\xff", b'{"schema": 1, "entries": {}}', b'{"schema": 1, "entries": [1]}']
    )
    def test_a_damaged_file_is_as_none(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / tuned.FILE_NAME).write_bytes(content)
        assert self.for_model(tmp_path).resolved["threads"].source == "default"

    def test_a_file_from_the_future_is_as_none(self, tmp_path: Path) -> None:
        self.file(tmp_path, PLACE | {"values": {"threads": 2}}, schema=2)
        assert self.for_model(tmp_path).resolved["threads"].source == "default"
