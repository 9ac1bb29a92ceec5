from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from nni.experiment.environment import (
    experiment_environment,
    nni_home,
    quiet_grpc,
    supervisor_environment,
)

BESIDE = str(Path(sys.executable).parent)


def test_interpreter_of_the_client_comes_first_on_the_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    monkeypatch.setenv("PATH", "/usr/bin")

    assert experiment_environment()["PATH"] == f"{BESIDE}{os.pathsep}/usr/bin"


def test_remarks_of_grpc_are_off_unless_the_user_wants_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GRPC_VERBOSITY", "DEBUG")
    quiet_grpc()
    assert os.environ["GRPC_VERBOSITY"] == "DEBUG"

    monkeypatch.delenv("GRPC_VERBOSITY")
    quiet_grpc()
    assert os.environ["GRPC_VERBOSITY"] == "ERROR"


@pytest.mark.parametrize("name", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_path_of_an_active_virtual_environment_stays(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "/some/env")
    monkeypatch.setenv("PATH", "/some/env/bin:/usr/bin")

    assert experiment_environment()["PATH"] == "/some/env/bin:/usr/bin"


def test_variables_of_a_trial_are_not_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_TRIAL_JOB_ID", "aB3dE")
    monkeypatch.setenv("MINE", "kept")

    environment = experiment_environment()

    assert "NNI_TRIAL_JOB_ID" not in environment
    assert environment["MINE"] == "kept"


def test_bytes_that_are_no_text_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKEN", "\udcff")

    assert "BROKEN" not in experiment_environment()


def test_home_is_in_the_users_state_folder_unless_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NNI_HOME")
    assert nni_home() == Path("~/.local/state/nni").expanduser()

    monkeypatch.setenv("NNI_HOME", "~/elsewhere")
    assert nni_home() == Path("~/elsewhere").expanduser()
    assert supervisor_environment(7)["NNI_READY_FD"] == "7"
