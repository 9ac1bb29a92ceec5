"""Entry point of the agent."""

import ctypes
import sys

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
