"""A recording process that is killed, limited, or not let in."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from homeai.journal.naming import records
from homeai.journal.reader import close_interrupted
from homeai.journal.writer import Journal
from homeai.metrics.fold import fold_all
from tests.journal.records import facts_of
from tests.metrics import stories

assert sys.platform != "win32"

import resource  # noqa: E402 - Windows has none

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534


def _recorded_by_a_process(code: str, tmp_path: Path, *, limit: int = 0) -> subprocess.Popen[str]:
    def restrict() -> None:
        if limit:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    prelude = f"""
import sys, time
from pathlib import Path
from homeai.journal.writer import Journal
from tests.metrics import stories
from tests.stopwatch import Stopwatch
journal = Journal(Path({str(tmp_path)!r}), on_trouble=lambda fault: print(fault.code, fault.message, fault.help))
"""
    return subprocess.Popen(
        [sys.executable, "-c", prelude + code], stdout=subprocess.PIPE, text=True, cwd=ROOT, preexec_fn=restrict
    )


def test_a_process_killed_in_mid_answer_loses_nothing_that_was_told(tmp_path: Path) -> None:
    """The facts were told 50 ms ago at least, on a machine at rest: more than a bundle's time."""
    process = _recorded_by_a_process(
        """
for fact in stories.whole_session()[:30]:
    journal.put(fact)
watch = Stopwatch()
while watch.seconds < 0.05:
    time.sleep(0.01)
print("told", flush=True)
time.sleep(600)
""",
        tmp_path,
    )
    assert process.stdout is not None
    with process.stdout as told:
        assert told.readline() == "told\n"
        process.kill()
        assert process.wait() == -signal.SIGKILL
    back, reading = facts_of(records(tmp_path)[0])
    assert back == stories.whole_session()[:30]
    assert not reading.damage
    answer = fold_all(close_interrupted(back)).answers[1]
    assert answer.ended is not None
    assert answer.ended.fault is not None
    assert (answer.ended.finish_reason, answer.ended.fault.code) == ("error", "interrupted")
    assert answer.answer_text == fold_all(back).answers[1].answer_text != ""
    # The lock went with the process: the session can be taken up again.
    Journal.continued(records(tmp_path)[0]).close()


def test_a_limit_on_the_size_of_files_ends_the_record_at_a_whole_line(tmp_path: Path) -> None:
    process = _recorded_by_a_process(
        """
for fact in stories.whole_session():
    journal.put(fact)
journal.close()
print("done")
""",
        tmp_path,
        limit=4096,
    )
    told, _ = process.communicate(timeout=120)
    assert told.splitlines()[0].startswith("record_failed This session is no longer recorded: file too large.")
    assert "What was recorded before is kept" in told
    assert told.splitlines()[1:] == ["done"]
    path = records(tmp_path)[0]
    assert 3000 < path.stat().st_size <= 4096
    back, reading = facts_of(path)
    assert back == stories.whole_session()[: len(back)]
    assert not reading.damage


@pytest.mark.skipif(os.getuid() != 0, reason="only the superuser can become another user")
def test_a_folder_that_may_not_be_written_to_is_told_once() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, NOBODY, NOBODY)
        Path(folder).chmod(0o500)
        process = _recorded_by_a_process(
            f"""
import os
os.setuid({NOBODY})
for fact in stories.whole_session():
    journal.put(fact)
journal.close()
print("done")
""",
            Path(folder),
        )
        told, _ = process.communicate(timeout=120)
        assert told.splitlines() == [
            f"record_failed This session is no longer recorded: permission denied ({folder}/2026-11). "
            "Nothing of it was recorded; the chat goes on, and writing is tried again.",
            "done",
        ]
        assert records(Path(folder)) == []
