"""Entry point of the agent."""

import sys

import pytest

from svc_trial_runner.__main__ import main


def test_wrong_settings_are_one_line_and_exit_code_two(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NNI_NATS_URL", "nats://127.0.0.1:1")
    monkeypatch.setattr(sys, "argv", ["svc_trial_runner", "--max-trials", "0"])

    assert main() == 2

    assert capsys.readouterr().err == "ERROR: --max-trials must be >= 1, got 0\n"
