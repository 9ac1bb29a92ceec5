"""The fleet of the compose file: a machine of someone else joins a pool and runs its trials."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support import wait
from tests.support.compose_deployment import TOKEN, ComposeDeployment, compose_deployment
from tests.support.joined_machines import Desk
from tests.support.stores import S3Server

pytest.importorskip("cryptography")

TIMEOUT_S = 120.0
PARTS = ("dispatcher", "manager", "fleet")
CONFIG = """\
searchSpace: {x: {_type: choice, _value: [1, 2]}}
trialCommand: python3 trial.py
trialCodeDirectory: .
trialConcurrency: 2
maxTrialNumber: 2
tuner: {name: GridSearch}
trainingService: {platform: pool, name: desks}
"""
TRIAL = """\
import nni

parameters = nni.get_next_parameter()
nni.report_final_result(parameters["x"])
"""


@pytest.mark.timeout(400)
def test_machine_from_outside_joins_a_pool_of_the_compose_file_and_runs_its_trials(
    shared_s3: S3Server, tmp_path: Path
) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "trial.py").write_text(TRIAL)
    (code / "config.yml").write_text(CONFIG)
    (code / "pool.yml").write_text("name: desks\n")
    with compose_deployment(tmp_path, shared_s3, [], PARTS) as deployment:
        nnictl(deployment, "pool", "create", str(code / "pool.yml"))
        invited = nnictl(deployment, "runner", "invite", "--pool", "desks", "--json")
        desk = Desk(tmp_path / "desk", json.loads(invited))
        desk.home.mkdir()
        joined = desk.join()
        try:
            created = nnictl(deployment, "create", "--config", str(code / "config.yml"))
            experiment = created.partition("The experiment id is ")[2].split()[0]
            wait.until(
                lambda: status(deployment, experiment) in {"DONE", "ERROR"}, TIMEOUT_S, "the end"
            )
            trials = deployment.processes.call(
                "GET", f"/experiments/{experiment}/trial-jobs", TOKEN
            )
            joined.send_signal(signal.SIGINT)
            code_of_agent = joined.wait(TIMEOUT_S)
        finally:
            joined.kill()
            joined.wait()
        logs = {name: deployment.processes.log(name) for name in ("manager", "fleet")}

    assert [trial["status"] for trial in trials] == ["SUCCEEDED"] * 2, logs
    assert code_of_agent == 0


def nnictl(deployment: ComposeDeployment, *words: str) -> str:
    """Run a command as an administrator on another machine; return what it prints."""
    done = deployment.processes.nnictl(*words, token=TOKEN)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{deployment.processes.log('fleet')}"
    return done.stdout


def status(deployment: ComposeDeployment, experiment: str) -> str:
    answer: Any = deployment.processes.call("GET", f"/experiments/{experiment}/check-status", TOKEN)
    return str(answer["status"])
