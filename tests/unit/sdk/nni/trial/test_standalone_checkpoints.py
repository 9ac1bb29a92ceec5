"""Checkpoints of scripts without an experiment: each run is a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """\
import os, sys
import nni
folder = nni.checkpoint_directory()
file = folder / "step"
done = int(file.read_text()) if file.exists() else 0
print("begins after", done)
for step in range(done + 1, int(sys.argv[1]) + 1):
    file.write_text(str(step))
    print(nni.save_checkpoint(step=step))
file.write_text("half")
(folder / "more").touch()
os._exit(9)
"""


def run(folder: Path, steps: int, script: str = SCRIPT, **variables: str) -> list[str]:
    path = folder / "script.py"
    path.write_text(script)
    found = subprocess.run(
        [sys.executable, path, str(steps)],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stderr == ""
    return found.stdout.splitlines()


@pytest.fixture(autouse=True)
def unbuffered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")


def test_a_script_that_was_killed_goes_on_from_its_last_checkpoint(tmp_path: Path) -> None:
    first = run(tmp_path, 2)

    second = run(tmp_path, 3)

    assert first == ["begins after 0", "True", "True"]
    assert second == ["begins after 2", "True"]
    assert sorted(one.name for one in (tmp_path / ".nni-checkpoint").iterdir()) == ["3.3"]


def test_what_was_half_written_before_the_first_checkpoint_is_gone(tmp_path: Path) -> None:
    run(tmp_path, 0)

    assert run(tmp_path, 1) == ["begins after 0", "True"]


def test_step_without_a_number_follows_the_last_one(tmp_path: Path) -> None:
    script = "import nni; nni.checkpoint_directory(); nni.save_checkpoint(); nni.save_checkpoint()"

    run(tmp_path, 0, script)

    assert [one.name for one in (tmp_path / ".nni-checkpoint").iterdir()] == ["2.2"]


def test_another_rank_of_the_run_leaves_the_content_as_it_is(tmp_path: Path) -> None:
    run(tmp_path, 1)

    script = "import nni; print((nni.checkpoint_directory() / 'step').read_text())"

    assert run(tmp_path, 0, script, RANK="1") == ["half"]
    assert run(tmp_path, 0, script) == ["1"]


def test_failed_copy_is_a_warning_and_the_earlier_one_stays(tmp_path: Path) -> None:
    run(tmp_path, 1)
    script = """\
import contextlib, io, os, nni
folder = nni.checkpoint_directory()
os.mkfifo(folder / "pipe")
with contextlib.redirect_stderr(io.StringIO()) as error:
    print(nni.save_checkpoint(step=2))
print("not saved" in error.getvalue())
"""

    assert run(tmp_path, 0, script) == ["False", "True"]
    assert [one.name for one in (tmp_path / ".nni-checkpoint").iterdir()] == ["1.1"]
