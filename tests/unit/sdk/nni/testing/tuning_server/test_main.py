"""The suite as a command."""

import json

import pytest

from nni.testing.tuning_server.__main__ import main
from tests.support.tuning_server import TuningServer, tuning_server_in_thread

SPACE = json.dumps({"x": {"_type": "uniform", "_value": [0, 1]}})


def test_server_that_passes_ends_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    with tuning_server_in_thread(TuningServer()) as address:
        assert main([address]) == 0

    shown = capsys.readouterr().out
    assert shown.splitlines()[-1].endswith(" passed, 0 failed")
    assert "FAILED" not in shown


def test_failed_test_is_shown_with_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    server = TuningServer()
    server.garbled = True
    with tuning_server_in_thread(server) as address:
        assert main([address, "--search-space", SPACE]) == 1

    shown = capsys.readouterr().out
    assert "FAILED  test_parameters_lie_in_the_space: " in shown
    assert "Traceback" in shown


def test_missing_server_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["127.0.0.1:1"], connect_timeout_s=0.001) == 2

    assert "no server can be reached at 127.0.0.1:1" in capsys.readouterr().err
