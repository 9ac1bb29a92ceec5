"""Start of an agent in the folder of its job, with a bundle that prints its settings."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from svc_trial_runner.fleet.adapters.training_services.job_folders import COMMAND, JobFolders
from svc_trial_runner.fleet.adapters.training_services.job_start import check_version
from svc_trial_runner.fleet.adapters.training_services.options import parse_options
from tests.support import sleeping_agents

PRINTS = "import sys; print(sys.argv[1:], sys.stdin.read())"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sleeping_agents, "RUN", PRINTS)
    sleeping_agents.SleepingAgents(tmp_path)
    (bundle,) = tmp_path.glob("*.tar.gz")
    options = parse_options({"python": sys.executable})
    return JobFolders(tmp_path).write("a", bundle, b'{"name": "a", "home": "~"}', options)


def start(folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["sh", "-c", COMMAND], cwd=folder, capture_output=True, text=True, check=False
    )


def test_job_becomes_the_agent_with_a_home_in_its_folder(folder: Path) -> None:
    done = start(folder)

    arguments, _, settings = done.stdout.partition("] ")
    assert arguments == "['agent', '-'"
    assert json.loads(settings) == {"name": "a", "home": str(folder / "home")}
    assert not (folder / "settings.json").exists()


def test_job_that_is_started_again_says_so(folder: Path) -> None:
    (folder / "settings.json").unlink()

    done = start(folder)

    assert done.returncode == 1
    assert "this job was started before" in done.stderr


def test_damaged_bundle_is_named(folder: Path) -> None:
    (folder / "bundle.tar.gz").unlink()
    (folder / "bundle.tar.gz").write_bytes(b"cut")

    done = start(folder)

    assert done.returncode == 1
    assert "bundle of the agent cannot be unpacked" in done.stderr
    assert "arrived cut or changed" in done.stderr
    assert "b'" not in done.stderr


def test_python_of_another_version_is_named_with_the_field() -> None:
    found = f"{sys.version_info[0]}.{sys.version_info[1]}"

    with pytest.raises(SystemExit, match=f"pythonVersion must be {found}.* got 3.99"):
        check_version([3, 99])


def test_program_of_another_python_does_not_start_the_job(folder: Path) -> None:
    job = json.loads((folder / "job.json").read_text())
    (folder / "job.json").write_text(json.dumps({**job, "python": [3, 99]}))

    done = start(folder)

    found = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert done.returncode == 1
    assert done.stderr == (
        f"ERROR: pythonVersion must be {found}, that of {sys.executable} in the job,"
        " got 3.99; change it, or give another interpreter as python\n"
    )
    assert (folder / "settings.json").exists()


def test_job_may_run_in_a_copy_of_its_folder(folder: Path, tmp_path: Path) -> None:
    copied = tmp_path / "a copy"
    shutil.copytree(folder, copied)

    done = start(copied)

    assert json.loads(done.stdout.partition("] ")[2])["home"] == str(copied / "home")
    assert (folder / "settings.json").exists()
    assert not (copied / "settings.json").exists()
