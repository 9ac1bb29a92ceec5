from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import nni
from nni.trial.launcher import launcher_text, write_launcher
from tests.support.trial_agent import TrialAgent

SDK = str(Path(nni.__file__).parents[1])


def run(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


def test_script_speaks_for_the_trial(tmp_path: Path) -> None:
    script = write_launcher(tmp_path)

    with TrialAgent(tmp_path, {"lr": 0.1}) as agent:
        got = run(script, "get", "lr", **agent.environment())
        reported = run(script, "final", "0.5", **agent.environment())

    assert (got.returncode, got.stdout, got.stderr) == (0, "0.1\n", "")
    assert (reported.returncode, reported.stderr) == (0, "")
    assert agent.metrics == [("FINAL", 0, 0.5)]


def test_module_writes_the_script(tmp_path: Path) -> None:
    run(sys.executable, "-m", "nni.trial.launcher", tmp_path, PYTHONPATH=SDK)

    assert run(tmp_path / "nni-trial", "get").stdout == "{}\n"


def test_users_environment_does_not_reach_the_script(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise RuntimeError")

    ended = run(write_launcher(tmp_path), "get", PYTHONPATH=str(tmp_path), PYTHONSTARTUP="x")

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "{}\n", "")


@pytest.mark.parametrize("name", ["with space", "with'quote", "x" * 200])
def test_interpreter_whose_path_fits_no_first_line_works(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "python").symlink_to(sys.executable)
    script = tmp_path / "nni-trial"
    script.write_text(launcher_text(str(folder / "python"), SDK))
    script.chmod(0o755)

    ended = run(script, "get")

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "{}\n", "")
