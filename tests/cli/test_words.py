"""Sentences of the command line: who reads them knows what was wrong, once, and no number of an operating system."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Homeai


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["ask", "--max-tokens"],
            "homeai: --max-tokens: expected one argument. homeai ask --help shows what it takes.\n",
        ),
        (
            ["ask", "--cpu", "--gpu-layers", "3", "hi"],
            "homeai: --gpu-layers: not allowed with argument --cpu. homeai ask --help shows what it takes.\n",
        ),
        (["models", "x"], "homeai: unrecognized arguments: x. homeai models --help shows what it takes.\n"),
        (
            ["ask", "--context", "100000000", "hi"],
            "homeai: --context takes a whole number from 0 to 16777216 (also 8k, 1m) or trained, not 100000000\n",
        ),
        (
            ["ask", "--prompt-file", "nowhere"],
            "homeai: Cannot read the prompt from nowhere: no such file or directory.\n",
        ),
        (["ask", "--prompt-file", "/"], "homeai: Cannot read the prompt from /: is a directory.\n"),
    ],
)
def test_it_is_one_plain_sentence(homeai: Homeai, arguments: list[str], said: str) -> None:
    done = homeai.run(*arguments)
    assert (done.status, done.err) == (2, said)


def test_settings_that_cannot_be_read(homeai: Homeai) -> None:
    path = homeai.home / "config" / "config.toml"
    path.mkdir(parents=True)
    assert homeai.run("config").err == f"homeai: Cannot read the settings in {path}: is a directory\n"


@pytest.mark.parametrize("ending", ["", "/"])
def test_a_folder_named_as_a_model_is_named_whole(homeai: Homeai, tmp_path: Path, ending: str) -> None:
    folder = tmp_path / "some" / "models"
    folder.mkdir(parents=True)
    done = homeai.run("ask", "--model", f"{folder}{ending}", "hi")
    assert done.err == f"homeai: {folder} is a folder, not a file. Name a .gguf file inside it.\n"
    assert done.status == 4


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("homeai < /dev/null", "Standard input, output and error are no terminals: use"),
        ("homeai < /dev/null 2> /dev/null", ""),
    ],
)
def test_only_what_is_no_terminal_is_named(homeai: Homeai, line: str, said: str) -> None:
    assert said in homeai.shell(line).err
