"""A machine that a person brings: it joins a pool through the TLS front and runs its trials."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import grpc
import pytest

from nni_proto.experiment.v1 import experiment_service_pb2 as pb
from nni_proto.experiment.v1 import experiment_service_pb2_grpc as pb_grpc
from nni_wire.metadata import bearer
from svc_trial_runner.enrolment import FRONT_NAME, EnrolmentWord
from svc_trial_runner.joining.front_client import read_authority
from tests.support.joined_machines import Desk, front_shape, invited, joined_agents
from tests.support.local_shape import LocalShape
from tests.support.nnictl import Nnictl
from tests.support.wait import until

pytest.importorskip("cryptography")

__all__ = ["front_shape"]  # a fixture

TIMEOUT_S = 120.0
CONFIG = """\
searchSpace: {{x: {{_type: choice, _value: [1, 2]}}}}
trialCommand: python3 trial.py
trialCodeDirectory: {folder}
trialConcurrency: 2
maxTrialNumber: 2
tuner: {{name: GridSearch}}
trainingService: {{platform: pool, name: desks}}
"""
TRIAL = """\
import nni

parameters = nni.get_next_parameter()
nni.report_final_result(parameters["x"])
"""


@pytest.fixture
def desk(front_shape: LocalShape, tmp_path: Path) -> Desk:
    """Invite a machine to the pool `desks`, which has no platform."""
    (tmp_path / "pool.yml").write_text("name: desks\n")
    nnictl = Nnictl(front_shape)
    front_shape.start()
    nnictl("pool", "create", tmp_path / "pool.yml")
    (made,) = invited(nnictl, tmp_path / "desk")
    return made


def run_experiment(shape: LocalShape, folder: Path) -> list[str]:
    """Run two trials; return their states."""
    folder.mkdir()
    (folder / "trial.py").write_text(TRIAL)
    (folder / "config.yml").write_text(CONFIG.format(folder=folder))
    experiment = shape.create(folder / "config.yml")
    assert shape.wait_for(experiment, "DONE", "ERROR", timeout_s=TIMEOUT_S) == "DONE"
    return [trial["status"] for trial in shape.trials(experiment)]


@pytest.mark.timeout(400)
def test_machine_that_joined_runs_trials_also_after_it_was_killed(
    front_shape: LocalShape, desk: Desk, tmp_path: Path
) -> None:
    nnictl = Nnictl(front_shape)
    first = desk.join()
    try:
        assert run_experiment(front_shape, tmp_path / "one") == ["SUCCEEDED"] * 2
        first.kill()
        first.wait()

        second = desk.join()  # by the same word, which was for one machine
        try:
            assert run_experiment(front_shape, tmp_path / "two") == ["SUCCEEDED"] * 2
            until(
                lambda: list(joined_agents(nnictl).values()) == ["RUNNING"], TIMEOUT_S, "one agent"
            )
            assert [name.rpartition("-")[2] for name in joined_agents(nnictl)] == ["2"]

            second.send_signal(signal.SIGINT)

            assert second.wait(TIMEOUT_S) == 0
        finally:
            second.kill()
    finally:
        first.kill()
    assert not list(desk.home.glob(".nni/joined/*/agents/*"))
    _check_calls_through_the_front(front_shape, desk)
    secret = EnrolmentWord.parse(desk.invitation["word"]).secret.encode()
    files = [
        path for path in (*front_shape.home.rglob("*"), *desk.home.rglob("*")) if path.is_file()
    ]
    assert [path for path in files if secret in path.read_bytes()] == []


def _check_calls_through_the_front(shape: LocalShape, desk: Desk) -> None:
    """Assert that the front gives no rights: neither without a token nor with the owner's."""
    word = EnrolmentWord.parse(desk.invitation["word"])
    host, _, port = desk.invitation["address"].rpartition(":")
    authority = read_authority(host, int(port), word.authority_sha256)
    with grpc.secure_channel(
        desk.invitation["address"],
        grpc.ssl_channel_credentials(authority.encode()),
        [("grpc.ssl_target_name_override", FRONT_NAME)],
    ) as channel:
        stub: Any = pb_grpc.ExperimentServiceStub(channel)
        for metadata, expected in (
            ((), grpc.StatusCode.UNAUTHENTICATED),
            (bearer("guess"), grpc.StatusCode.UNAUTHENTICATED),
            (bearer(str(shape.endpoint()["token"])), grpc.StatusCode.PERMISSION_DENIED),
        ):
            with pytest.raises(grpc.RpcError) as caught:
                stub.ListExperiments(pb.ListExperimentsRequest(), metadata=metadata, timeout=30)
            assert caught.value.code() is expected
