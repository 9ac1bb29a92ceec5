"""Command line of the host process."""

import json
import os
import subprocess
import sys
from pathlib import Path

HOST = [sys.executable, "-m", "nni.hpo.host"]


def test_host_with_another_parent_ends_with_an_error(tmp_path: Path) -> None:
    done = subprocess.run(
        [*HOST, "--parent-pid", "1"], cwd=tmp_path, capture_output=True, check=False
    )

    assert done.returncode == 1


def test_host_of_this_parent_serves_until_its_pipe_is_closed(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    answers_read, answers_write = os.pipe()
    os.close(write_end)  # the end of file ends the host

    done = subprocess.run(
        [
            *HOST,
            "--in-fd",
            str(read_end),
            "--out-fd",
            str(answers_write),
            "--parent-pid",
            str(os.getpid()),
        ],
        cwd=tmp_path,
        pass_fds=(read_end, answers_write),
        check=False,
    )
    for descriptor in (read_end, answers_read, answers_write):
        os.close(descriptor)

    assert done.returncode == 0


def test_log_folder_is_not_on_the_import_path(tmp_path: Path) -> None:
    (tmp_path / "demo_module.py").write_text("")
    request = '{"kind": "tuner", "class_name": "demo_module.Missing"}'

    done = subprocess.run(
        [*HOST, "--check"],
        cwd=tmp_path,
        input=request,
        capture_output=True,
        text=True,
        check=False,
    )

    assert "No module named 'demo_module'" in done.stdout


def test_host_without_pipes_ends_with_the_reason(tmp_path: Path) -> None:
    done = subprocess.run(HOST, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "Bad file descriptor" in done.stderr


def test_importance_is_answered_on_request(tmp_path: Path) -> None:
    request = {"search_space": {}, "trials": [], "metric": "loss", "optimize_mode": "minimize"}

    done = subprocess.run(
        [*HOST, "--importance"],
        cwd=tmp_path,
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0
    assert "at least 4 trials whose 'loss'" in json.loads(done.stdout)["error"]
