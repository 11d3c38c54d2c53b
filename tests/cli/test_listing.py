"""`homeai config` and `homeai models`: what there is, where it comes from, and which would be used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from homeai.cli.table import cell_width, table
from homeai.settings import SETTINGS
from tests.cli.conftest import ROOT, Homeai
from tests.models.tiny import write_chat_model


class TestConfig:
    def test_every_setting_has_a_line_with_its_origin(self, homeai: Homeai) -> None:
        path = homeai.configure('# mine\ncontext = "8k"\n')
        done = homeai.run("config", "--threads", "1", HOMEAI_TOP_K="7")
        lines = {line.split()[0]: line.split(maxsplit=2)[1:] for line in done.out.splitlines()[1:]}
        assert list(lines) == [setting.key for setting in SETTINGS]
        assert lines["threads"] == ["1", "--threads"]
        assert lines["top_k"] == ["7", "HOMEAI_TOP_K"]
        assert lines["context"] == ["8192", f"{path} line 2"]
        assert lines["batch"] == ["2048", "default"]
        assert lines["sequences"] == ["1", "default: 4 in the dashboard"]
        assert lines["threads_batch"] == ["1", "default: same as threads"]
        assert (done.status, done.err) == (0, "")

    def test_as_an_object(self, homeai: Homeai) -> None:
        told = homeai.run("config", "--json", HOMEAI_TOP_K="7").object()
        assert told["schema"] == 1
        assert told["config_file"] == str(homeai.home / "config" / "config.toml")
        top_k = told["settings"]["top_k"]
        assert (top_k["value"], top_k["source"], top_k["origin"]) == (7, "environment", "HOMEAI_TOP_K")
        assert told["settings"]["seed"]["value"] is None

    def test_the_path_alone(self, homeai: Homeai) -> None:
        # Also when the file cannot be read as settings: this is how to find it.
        homeai.configure("nonsense = = 1")
        done = homeai.run("config", "--path")
        assert (done.status, done.out) == (0, f"{homeai.home / 'config' / 'config.toml'}\n")

    def test_an_unknown_key(self, homeai: Homeai) -> None:
        path = homeai.configure("thread = 4\n")
        for command in (["config"], ["ask", "hi"], ["models"]):
            done = homeai.run(*command)
            assert (done.status, command == ["config"]) == (2, done.out != "")  # which shows what holds all the same
            assert f'{path} line 1: "thread" is no setting. Did you mean "threads"?' in done.err

    def test_it_survives_a_folder_name_that_is_no_text(self, homeai: Homeai) -> None:
        done = homeai.run("config", HOMEAI_FOLDERS="/models\udcff\x1b[31m")
        assert done.status == 0
        assert "/models\ufffd␛[31m" in done.out


class TestModels:
    @pytest.fixture
    def folder(self, homeai: Homeai) -> Path:
        folder = homeai.home / "models"
        folder.mkdir()
        write_chat_model(folder / "tiny.gguf")
        (folder / "page.gguf").write_text("<html>Sign in</html>")
        homeai.configure(f"folders = ['{folder}']\n")
        return folder

    def test_a_line_for_each_and_a_mark_on_the_one_in_use(self, homeai: Homeai, folder: Path) -> None:
        done = homeai.run("models")
        assert done.status == 0
        heading, *lines = done.out.splitlines()
        assert heading.split() == ["name", "size", "quant", "params", "context", "from", "file"]
        marked = {line.lstrip("* ").split()[0]: line.startswith("*") for line in lines}
        assert marked == {"tiny": False, "SmolLM2-135M-Instruct.Q4_1": True}
        assert "4,096" in next(line for line in lines if "tiny" in line)
        assert "~/models/tiny.gguf" in done.out
        assert "not usable: page.gguf is a web page" in done.err
        assert "page" not in done.out

    def test_the_mark_follows_the_choice(self, homeai: Homeai, folder: Path) -> None:
        done = homeai.run("models", "--model", "tiny")
        assert [line.split()[1] for line in done.out.splitlines() if line.startswith("*")] == ["tiny"]
        homeai.run("ask", "--model", "tiny", "hi")
        done = homeai.run("models")
        assert [line.split()[1] for line in done.out.splitlines() if line.startswith("*")] == ["tiny"]

    def test_a_context_without_room_is_named_with_one_that_fits(self, homeai: Homeai, folder: Path) -> None:
        write_chat_model(folder / "deep.gguf", layers=16, context=1 << 30)
        done = homeai.run("models", HOMEAI_CONTEXT="16m")
        assert done.status == 0
        assert "deep" in done.out
        assert "no room in main memory alone: deep: A context of 16,777,216 tokens needs " in done.err
        fits = int(done.err.partition("deep: A context")[2].partition("With --context ")[2].split()[0])
        assert 10_000 < fits < 1 << 24
        done = homeai.run("models", HOMEAI_CONTEXT=str(fits // 2))
        assert "alone: deep" not in done.err

    def test_as_an_object(self, homeai: Homeai, folder: Path) -> None:
        told = homeai.run("models", "--json", "--model", "tiny").object()
        models = {model["name"]: model for model in told["models"]}
        assert models["tiny"]["used"] is True
        needs = models["tiny"]["needs"]
        assert (needs["context"], needs["fits_main_memory"]) == (4096, True)
        assert needs["model_bytes"] > 100_000
        assert needs["kv_bytes"] == 4096 * 256
        assert models["tiny"]["path"] == str(folder / "tiny.gguf")
        assert models["tiny"]["context_trained"] == 4096
        assert models["tiny"]["refusal"] is None
        assert models["page"]["kind"] == "html"
        assert models["page"]["refusal"]["code"] == "broken_model"

    @pytest.mark.parametrize("model", ["tiny", "nothing-like-it"])
    def test_each_folder_is_searched_once(self, homeai: Homeai, folder: Path, model: str) -> None:
        code = (
            "import sys\n"
            f"sys.addaudithook(lambda event, args: print('searched', args[0], file=sys.stderr)"
            f" if event == 'os.scandir' and str(args[0]).startswith({str(folder)!r}) else None)\n"
            f"from homeai.cli import main\nsys.exit(main(['models', '--model', {model!r}]))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=homeai.environment, cwd=ROOT, check=True
        )
        assert done.stderr.count(f"searched {folder}\n") == 1

    def test_odd_names_cannot_act_on_the_terminal(self, homeai: Homeai, folder: Path) -> None:
        write_chat_model(folder / "a\x1b[31m 日本 🦙.gguf")
        done = homeai.run("models")
        assert "\x1b" not in done.out
        assert "a␛[31m 日本 🦙" in done.out

    def test_a_model_that_is_not_there_leaves_no_mark(self, homeai: Homeai) -> None:
        done = homeai.run("models", "--json", "--model", "nothing-like-it")
        assert done.status == 0
        assert not any(model["used"] for model in done.object()["models"])


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("", 0),
        ("abc", 3),
        ("日本", 4),
        ("ｶﾞ", 2),
        ("e\u0301", 1),
        ("🦙", 2),
        ("👩\u200d🚒", 2),
        ("👍🏽", 2),
        ("☂\ufe0f", 2),
        ("🦙\ufe0f", 2),
        ("🏳\ufe0f\u200d🌈", 2),
        ("🇩🇪", 2),
        ("تم", 2),
    ],
)
def test_cells(text: str, cells: int) -> None:
    assert cell_width(text) == cells


def test_columns_are_straight_whatever_is_in_them() -> None:
    shown = table(("name", "size"), [("日本 🦙", "1"), ("a\tb\nc", "22"), ("\x1b[31m", "333")], right=(1,))
    ends = {cell_width(line) for line in shown.splitlines()}
    assert len(ends) == 1
    assert shown.count("\n") == 4
