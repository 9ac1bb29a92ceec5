"""Command and environment of a host."""

import json
import os
import sys
from pathlib import Path

import pytest

from svc_dispatcher.adapters.host_environment import (
    client_side,
    host_command,
    host_environment,
)
from svc_dispatcher.domain.values import ExperimentSetup


def setup(directory: Path, gpu_indices: tuple[int, ...] = ()) -> ExperimentSetup:
    return ExperimentSetup(
        experiment_id="exp",
        directory=str(directory),
        interpreter="",
        tuner=None,
        assessor=None,
        advisor=None,
        search_space=None,
        seed=0,
        log_level="info",
        gpu_indices=gpu_indices,
    )


def environment_of(directory: Path, inherited: dict[str, str], *gpu_indices: int) -> dict[str, str]:
    made_for = setup(directory, gpu_indices)
    return host_environment(made_for, client_side(made_for, inherited), directory / "log")


def test_host_runs_under_the_clients_interpreter() -> None:
    command = host_command("/opt/python3", 5, 6)

    assert command[:3] == ["/opt/python3", "-m", "nni.hpo.host"]
    assert command[-1] == str(os.getpid())
    assert host_command("", 5, 6)[0] == sys.executable


def test_clients_environment_is_used_where_it_was_kept(tmp_path: Path) -> None:
    kept = {"environment": {"PATH": "/client", "NNI_TOKEN": "secret"}, "interpreter": ""}
    (tmp_path / "environment.json").write_text(json.dumps(kept))

    made = environment_of(tmp_path, {"PATH": "/service"})

    assert made["PATH"] == "/client"
    assert made["NNI_LOG_DIRECTORY"] == str(tmp_path / "log")
    assert "NNI_TOKEN" not in made


def test_services_environment_is_used_elsewhere_without_its_secrets(tmp_path: Path) -> None:
    inherited = {"PATH": "/service", "NNI_TOKEN": "secret", "NNI_READY_FD": "3"}

    made = environment_of(tmp_path, inherited)

    assert made["PATH"] == "/service"
    assert "secret" not in made.values()
    assert "NNI_READY_FD" not in made


def test_host_is_repeatable_and_sees_the_configured_gpus(tmp_path: Path) -> None:
    made = environment_of(tmp_path, {"OMP_NUM_THREADS": "8"}, 0, 2)

    assert made["PYTHONHASHSEED"] == "0"
    assert made["OMP_NUM_THREADS"] == made["OPENBLAS_NUM_THREADS"] == "1"
    assert made["CUDA_VISIBLE_DEVICES"] == "0,2"


def test_gpus_are_left_alone_where_none_are_configured(tmp_path: Path) -> None:
    assert "CUDA_VISIBLE_DEVICES" not in environment_of(tmp_path, {})


@pytest.mark.parametrize("text", ["{", "[]"])
def test_damaged_file_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "environment.json").write_text(text)

    with pytest.raises(ValueError, match=r"must hold|Expecting"):
        client_side(setup(tmp_path), {})


def test_interpreter_of_the_last_resume_counts(tmp_path: Path) -> None:
    kept = {"environment": {}, "interpreter": "/new/python"}
    (tmp_path / "environment.json").write_text(json.dumps(kept))

    client = client_side(setup(tmp_path), {"PATH": "/service"})

    assert client.interpreter == "/new/python"
    assert client.environment == {"PATH": "/service"}


def test_linked_environment_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"environment": {"SECRET": "of another"}}')
    (tmp_path / "environment.json").symlink_to("other.json")

    with pytest.raises(OSError, match="link"):
        client_side(setup(tmp_path), {"PATH": "/service"})
