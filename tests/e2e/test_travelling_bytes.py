"""Code, checkpoints and outputs where client, manager and agents share no folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nni.experiment import Experiment
from nni.experiment.client import ManagerClient
from nni.experiment.conversion import config_to_proto
from nni.experiment.errors import NotFoundError
from nni_proto.experiment.v1 import experiment_pb2
from nni_proto.experiment.v1 import experiment_service_pb2 as pb
from nni_proto.trial.v1 import trial_pb2, trial_service_pb2
from nni_wire.values import from_value
from tests.support import wait
from tests.support.byte_deployment import AGENTS, byte_deployment

POPULATION = 4
STEPS = 3
TRIAL = """\
import os, pathlib, time
import nni
from model import steps_of

assert not [name for name in os.environ if "S3" in name or "TOKEN" in name and "TRIAL" not in name]
assert not os.path.exists("data.bin"), "what .nniignore names was sent"
parameters = nni.get_next_parameter()
load, save = (pathlib.Path(parameters[f"{verb}_checkpoint_dir"]) for verb in ("load", "save"))
steps = steps_of(load) + 1
time.sleep(0.3)
save.mkdir(parents=True)
(save / "steps").write_text(str(steps))
(save / "deep").mkdir()
(save / "deep" / "weights").write_bytes(os.urandom(300_000))
print("trained", steps)
(pathlib.Path(os.environ["NNI_OUTPUT_DIR"]) / "model.txt").write_text(f"after {steps}")
nni.report_final_result({"default": parameters["x"], "steps": steps})
"""
MODEL = """\
def steps_of(folder):
    if not folder.exists():
        return 0
    assert (folder / "deep" / "weights").stat().st_size == 300_000
    return int((folder / "steps").read_text())
"""


def code_in(folder: Path) -> Path:
    code = folder / "code"
    code.mkdir()
    (code / "trial.py").write_text(TRIAL)
    (code / "model.py").write_text(MODEL)
    (code / "data.bin").write_bytes(b"0" * 100_000)
    (code / ".nniignore").write_text("*.bin\n")
    return code


def created(client: ManagerClient, code: Path, steps: int = STEPS) -> str:
    experiment = Experiment("local")
    config = experiment.config
    config.search_space = {"x": {"_type": "uniform", "_value": [0, 1]}}
    config.trial_command = "python3 trial.py"
    config.trial_code_directory = code
    config.trial_concurrency = POPULATION
    config.max_trial_number = POPULATION * steps
    config.tuner.name = "PBTTuner"
    config.tuner.class_args = {"population_size": POPULATION, "seed": 1}
    answer = client.create(
        config_to_proto(config),
        port=0,
        url_prefix="",
        environment={"SECRET_OF_THE_CLIENT": "x"},
        interpreter="/usr/bin/no-such-python",
    )
    return answer.experiment.id


def trials(client: ManagerClient, experiment_id: str) -> list[trial_pb2.Trial]:
    return list(client.trials(trial_service_pb2.ListTrialsRequest(experiment_id=experiment_id)))


def ended(client: ManagerClient, experiment_id: str) -> list[trial_pb2.Trial]:
    return [
        one for one in trials(client, experiment_id) if one.state == trial_pb2.TRIAL_STATE_SUCCEEDED
    ]


def steps_of(trial: trial_pb2.Trial) -> tuple[int, int]:
    """Return the step in a trial's parameters and the number of steps already trained."""
    parameters: Any = from_value(trial.parameters)
    result: Any = from_value(trial.final_metric.value)
    return int(parameters["save_checkpoint_dir"].rpartition("/")[2]), int(result["steps"])


def output(client: ManagerClient, experiment_id: str, trial_id: str) -> str:
    pieces = client.follow_logs(experiment_id, pb.LOG_SOURCE_TRIAL_STDOUT, trial_id=trial_id)
    try:
        return b"".join(pieces).decode()
    except NotFoundError:  # it is still on its way
        return ""


@pytest.mark.timeout(240)
def test_population_is_trained_on_two_machines_though_the_store_is_killed(tmp_path: Path) -> None:
    with (
        byte_deployment(tmp_path, {"NNI_BLOB_GRACE_S": "0"}) as running,
        running.client() as client,
    ):
        experiment_id = created(client, code_in(tmp_path))
        wait.until(lambda: len(ended(client, experiment_id)) >= 2, 60, "first trials")

        running.s3.kill()
        reason = wait.until(lambda: waits_for_bytes(client, experiment_id), 60, "a visible reason")
        running.s3.start()
        wait.until(
            lambda: (
                client.get(experiment_id).experiment.state == experiment_pb2.EXPERIMENT_STATE_DONE
            ),
            90,
            "the end",
        )

        finished = ended(client, experiment_id)
        assert "cannot be used" in reason, "what stands in the way"
        assert len(finished) == POPULATION * STEPS
        assert all(trained == step + 1 for step, trained in map(steps_of, finished))
        assert len({one.runner_id for one in finished}) == len(AGENTS)
        # Its folder is gone from the agent, so what is read comes from the store.
        last = finished[-1]
        wait.until(
            lambda: output(client, experiment_id, last.id) == f"trained {steps_of(last)[1]}\n",
            30,
            "its output",
        )
        assert list(tmp_path.glob("homes/*/nni")) == [], (
            "no process may create the algorithm's folders"
        )

        client.stop(experiment_id)
        use = client.usage(experiment_id).experiments[0]
        assert use.used_bytes > STEPS * POPULATION * len("trained 1\n")
        client.delete(experiment_id)

        wait.until(lambda: client.usage().used_bytes == 0, 60, "everything collected")


def waits_for_bytes(client: ManagerClient, experiment_id: str) -> str:
    reason: str = client.get(experiment_id).experiment.waiting_for
    return reason if "checkpoint" in reason else ""


def is_done(client: ManagerClient, experiment_id: str) -> bool:
    state = client.get(experiment_id).experiment.state
    return state == experiment_pb2.EXPERIMENT_STATE_DONE


@pytest.mark.timeout(240)
def test_trials_wait_for_room_and_go_on_when_there_is_some(tmp_path: Path) -> None:
    with (
        byte_deployment(tmp_path, {"NNI_EXPERIMENT_QUOTA_BYTES": "1000000"}) as running,
        running.client() as client,
    ):
        experiment_id = created(client, code_in(tmp_path), steps=1)
        reason = wait.until(lambda: waits_for_bytes(client, experiment_id), 60, "a visible reason")
        waiting = [one for one in trials(client, experiment_id) if one.reason]

        running.restart("manager", {"NNI_EXPERIMENT_QUOTA_BYTES": "0"})

        wait.until(lambda: is_done(client, experiment_id), 60, "the end")
        assert len(ended(client, experiment_id)) == POPULATION
    assert "takes at most 1.0 MB for an experiment" in reason
    assert "NNI_EXPERIMENT_QUOTA_BYTES" in waiting[0].reason
