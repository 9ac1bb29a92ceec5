"""Entry point of the agent."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from svc_trial_runner.__main__ import main

GET_DUMPABLE, SET_DUMPABLE = 3, 4
"""Options of `prctl`."""


def test_wrong_settings_are_one_line_and_exit_code_two(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NNI_NATS_URL", "nats://127.0.0.1:1")
    monkeypatch.setattr(sys, "argv", ["svc_trial_runner", "--max-trials", "0"])

    assert main() == 2

    assert capsys.readouterr().err == "ERROR: --max-trials must be >= 1, got 0\n"


def test_process_with_secrets_cannot_be_inspected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["svc_trial_runner", "--max-trials", "0"])
    kernel = ctypes.CDLL(None)
    kernel.prctl(SET_DUMPABLE, 1, 0, 0, 0)
    try:
        main()

        assert kernel.prctl(GET_DUMPABLE, 0, 0, 0, 0) == 0
    finally:
        kernel.prctl(SET_DUMPABLE, 1, 0, 0, 0)


def test_missing_secrets_are_one_line_and_exit_code_two(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("NNI_SECRETS_FILE", str(tmp_path / "missing"))
    monkeypatch.setattr(sys, "argv", ["svc_trial_runner"])

    assert main() == 2

    assert capsys.readouterr().err.startswith("ERROR: NNI_SECRETS_FILE must name readable")


def test_agent_that_cannot_start_ends_with_exit_code_one_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "svc_trial_runner"],
        env={
            **os.environ,
            "NNI_HOME": str(tmp_path / "file"),
            "NNI_NATS_URL": "nats://127.0.0.1:1",
            "NNI_TOKEN": "secret",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 1
    assert "file/runner cannot be used" in done.stderr
