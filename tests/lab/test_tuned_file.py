"""The file of measured defaults: what is written reads back, what else is in it stays, and it is never half-written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeai.settings.tuned import FILE_NAME, Measured, Place, measured, write_measured

HERE = Place("Test CPU, 6 cores", "0.3.36 abc", "m.gguf 5")
AT = "2026-11-30T01:50:00.123+01:00"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / FILE_NAME


def written(file: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(file.read_bytes())
    return content


def write(file: Path, values: dict[str, object], place: Place = HERE, **answer_ms: tuple[float, float]) -> None:
    write_measured(file, place, values, at=AT, answer_ms=answer_ms)


PLACES = st.builds(Place, *(st.text(max_size=5) for _ in range(3)))
VALUES = st.dictionaries(st.text(max_size=5), st.none() | st.integers() | st.text() | st.booleans())


class TestRoundTrip:
    @given(measurements=st.lists(st.tuples(PLACES, VALUES), min_size=1, max_size=4))
    def test_each_combination_has_its_own_values(
        self, measurements: list[tuple[Place, dict[str, object]]], tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        file = tmp_path_factory.mktemp("round-trip") / FILE_NAME
        expected: dict[Place, dict[str, object]] = {}
        for place, values in measurements:
            write(file, values, place)
            before = expected.get(place, {})
            expected[place] = {key: value for key, value in (before | values).items() if value is not None}
        assert len(written(file)["entries"]) == len(expected)
        for place, remaining in expected.items():
            assert measured(file, place).values == remaining

    def test_the_figures_make_the_origin(self, file: Path) -> None:
        write(file, {"flash_attention": "off", "threads": 2}, flash_attention=(4910.0, 5720.0))
        assert measured(file, HERE) == Measured(
            {"flash_attention": "off", "threads": 2},
            {"flash_attention": "measured here 2026-11-30: 4.91 s against 5.72 s for a typical answer"},
        )

    def test_a_value_that_is_no_longer_better_goes_with_its_figures(self, file: Path) -> None:
        write(file, {"flash_attention": "off"}, flash_attention=(4910.0, 5720.0))
        write(file, {"flash_attention": None})
        (entry,) = written(file)["entries"]
        assert (entry["values"], entry["answer_ms"]) == ({}, {})

    def test_new_figures_replace_old_ones_also_by_none(self, file: Path) -> None:
        write(file, {"threads": 2}, threads=(1000.0, 2000.0))
        write(file, {"threads": 3})
        assert measured(file, HERE) == Measured({"threads": 3}, {})

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
    def test_only_the_user_can_read_it(self, file: Path) -> None:
        write(file, {"threads": 2})
        assert file.stat().st_mode & 0o777 == 0o600
        assert file.parent.stat().st_mode & 0o777 == 0o700


class TestWhatElseIsThere:
    def test_keys_of_a_later_version_stay(self, file: Path) -> None:
        file.parent.mkdir()
        old = {**HERE.keys, "values": {"batch": 1024, "threads": 1}, "answer_ms": {"batch": [1, 2]}, "gpu": "none"}
        other = {**HERE.keys, "build": "other", "values": {"threads": 5}}
        file.write_text(json.dumps({"schema": 1, "entries": [old, other, "odd"], "note": [1]}))
        write(file, {"threads": 2, "flash_attention": None}, threads=(1000.0, 2000.0))
        content = written(file)
        assert content["note"] == [1]
        assert content["entries"] == [
            other,
            "odd",
            {
                **HERE.keys,
                "values": {"batch": 1024, "threads": 2},
                "answer_ms": {"batch": [1, 2], "threads": [1000.0, 2000.0]},
                "gpu": "none",
                "at": AT,
            },
        ]

    def test_several_entries_of_one_combination_become_one(self, file: Path) -> None:
        file.parent.mkdir()
        entries = [{**HERE.keys, "values": {"threads": 1}}, {**HERE.keys, "values": {"threads": 2}}]
        file.write_text(json.dumps({"schema": 1, "entries": entries}))
        write(file, {"flash_attention": "off"})
        assert [entry["values"] for entry in written(file)["entries"]] == [{"threads": 2, "flash_attention": "off"}]

    @pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"schema": 2, "entries": []}', b"[" * 100_000])
    def test_a_file_that_cannot_be_read_is_replaced(self, file: Path, content: bytes) -> None:
        file.parent.mkdir()
        file.write_bytes(content)
        assert measured(file, HERE) == Measured()
        write(file, {"threads": 2})
        assert measured(file, HERE).values == {"threads": 2}

    @pytest.mark.parametrize(
        "odd",
        [
            {"at": None},
            {"at": "yesterday"},
            {"answer_ms": None},
            {"answer_ms": {"threads": 5}},
            {"answer_ms": {"threads": [1]}},
            {"answer_ms": {"threads": ["a", "b"]}},
            {"answer_ms": {"threads": [float("inf"), float("nan")]}},
            {"answer_ms": {"threads": [10**400, 1]}},
        ],
    )
    def test_odd_figures_cost_the_origin_only(self, file: Path, odd: dict[str, object]) -> None:
        file.parent.mkdir()
        entry = {**HERE.keys, "values": {"threads": 2}, "at": AT, "answer_ms": {"threads": [1, 2]}}
        file.write_text(json.dumps({"schema": 1, "entries": [entry | odd]}))
        assert measured(file, HERE) == Measured({"threads": 2}, {})
        write(file, {"flash_attention": "off"})
        assert measured(file, HERE).values == {"threads": 2, "flash_attention": "off"}


class TestWholeOrNotAtAll:
    def test_a_place_that_cannot_be_written_is_told_and_left_clean(self, tmp_path: Path) -> None:
        (tmp_path / FILE_NAME).mkdir()
        with pytest.raises(OSError):
            write(tmp_path / FILE_NAME, {"threads": 2})
        assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]

    @pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on file sizes")
    def test_a_disk_that_fills_up_leaves_the_old_file(self, file: Path) -> None:
        write(file, {"threads": 2})
        before = file.read_bytes()
        code = (
            "import resource, pathlib, sys\n"
            "from homeai.settings.tuned import Place, write_measured\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
            "place = Place('other', 'other', 'other')\n"
            "write_measured(pathlib.Path(sys.argv[1]), place, {'threads': 4}, at='', answer_ms={})\n"
        )
        environment = {key: value for key, value in os.environ.items() if not key.startswith("COV")}
        done = subprocess.run(
            [sys.executable, "-c", code, str(file)], capture_output=True, text=True, env=environment, check=False
        )
        assert done.returncode == 1
        assert "File too large" in done.stderr
        assert file.read_bytes() == before
        assert [path.name for path in file.parent.iterdir()] == [FILE_NAME]
