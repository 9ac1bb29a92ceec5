"""Attacks of user code in containers that the real entry points have started."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from tests.support import wait
from tests.support.compose_deployment import (
    ORDER,
    TOKEN,
    ComposeDeployment,
    compose_deployment,
)
from tests.support.container import reason_without
from tests.support.stores import S3Server

pytestmark = [
    pytest.mark.skipif(bool(reason_without()), reason=reason_without() or "root"),
    pytest.mark.timeout(180),
]
ATTACK = Path(__file__).parents[1] / "support" / "attack.py"
TRIAL = """\
import json, os, pathlib, subprocess, sys
import nni
import attack
nni.get_next_parameter()
output = pathlib.Path(os.environ["NNI_OUTPUT_DIR"])
experiment = output.parents[1]
found = attack.attack([str(experiment), *(str(experiment / name) for name in SUBFOLDERS)])
found["warm"] = os.getppid() != 1 and "warm" in pathlib.Path(
    f"/proc/{os.getppid()}/cmdline").read_text()
(output / "attack.json").write_text(json.dumps(found))
os.makedirs(output / "closed" / "deep", mode=0o700)
(output / "closed" / "deep" / "own").write_text("output")
os.chmod(output / "closed" / "deep", 0)
os.chmod(output / "closed", 0)
with open("/dev/stdout", "a") as file:
    file.write("written by name\\n")
subprocess.Popen(["sleep", "1000"], start_new_session=True)
nni.report_final_result(1.0)
""".replace("SUBFOLDERS", repr(("db", "log", "checkpoint", "trials")))
TUNER = """\
import json, os, pathlib
import attack
from nni.tuner import Tuner

class Attacker(Tuner):
    def __init__(self):
        log = pathlib.Path(os.environ["NNI_LOG_DIRECTORY"])
        found = attack.attack([str(log.parent), str(log.parent / "db"), str(log.parent / "trials")])
        (log / "attack.json").write_text(json.dumps(found))
        (log / "closed").mkdir(mode=0o700)
        (log / "closed" / "own").touch(mode=0o600)

    def update_search_space(self, search_space):
        pass

    def generate_parameters(self, parameter_id, **kwargs):
        return {"x": 0.5}

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        pass
"""
SEARCH = """\
import json, os, pathlib
import attack
import nni
from torch import nn
from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.experiment import NasExperimentConfig
from nni.nas.experiment.engines import create_space
from nni.nas.experiment.explorations import create_exploration
from nni.nas.nn.pytorch import LayerChoice, ModelSpace
from nni.nas.strategy import Random


class Net(ModelSpace):
    def __init__(self):
        super().__init__()
        self.layer = LayerChoice([nn.ReLU(), nn.Tanh(), nn.Identity()], label="layer")

    def forward(self, inputs):
        return self.layer(inputs)


def evaluate(model):
    nni.report_final_result(1.0)


class Attacker(Random):
    def _run(self):
        log = pathlib.Path(os.environ["NNI_LOG_DIRECTORY"])
        here = str(pathlib.Path(__file__).parent)
        folders = [str(log.parent), str(log.parent / "db"), str(log.parent / "trials"), here]
        (log / "attack.json").write_text(json.dumps(attack.attack(folders)))
        super()._run()


def create():
    space, evaluator, strategy = Net(), FunctionalEvaluator(evaluate), Attacker(seed=0)
    config = NasExperimentConfig(
        "ts", "simplified", "local", trial_concurrency=1, max_trial_number=2
    ).canonical(space, evaluator, strategy)
    return create_exploration(config, create_space(config, space, evaluator), strategy)
"""


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("code")
    (folder / "trial.py").write_text(TRIAL)
    (folder / "attacker.py").write_text(TUNER)
    shutil.copy(ATTACK, folder)
    for path in (folder, *folder.iterdir()):
        path.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def deployment(
    shared_s3: S3Server, tmp_path_factory: pytest.TempPathFactory, code: Path
) -> Iterator[ComposeDeployment]:
    with compose_deployment(tmp_path_factory.mktemp("compose"), shared_s3, [code]) as started:
        yield started


@pytest.fixture(scope="module")
def experiment(deployment: ComposeDeployment, code: Path) -> str:
    """Finished experiment whose trials and tuner attack: warm, plain."""
    config = {
        "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
        "trialCommand": "python3 trial.py",
        "trialCodeDirectory": str(code),
        "trialConcurrency": 2,
        "maxTrialNumber": 4,
        "tuner": {"className": "attacker.Attacker", "codeDirectory": str(code)},
        "trainingService": {"platform": "local"},
    }
    processes = deployment.processes
    made = str(processes.call("POST", "/experiment", TOKEN, config)["experiment_id"])

    def state() -> str:
        return str(processes.call("GET", f"/experiments/{made}/check-status", TOKEN)["status"])

    wait.until(lambda: state() in {"DONE", "ERROR"}, 90, "the end")
    log = processes.folder / "nni-experiments" / made / "log" / "dispatcher.log"
    assert state() == "DONE", log.read_text()
    return made


@pytest.fixture(scope="module")
def search(deployment: ComposeDeployment, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Finished search, created on another machine, whose strategy attacks."""
    code = tmp_path_factory.mktemp("search")
    (code / "search.py").write_text(SEARCH)
    shutil.copy(ATTACK, code)
    processes = deployment.processes
    variables = {
        **processes.client_variables(TOKEN),
        "PATH": f"{Path(sys.executable).parent}:{os.defpath}",
    }
    command = [sys.executable, "-c", "import search; print('made', search.create())"]
    done = subprocess.run(
        command, cwd=code, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    made = done.stdout.split()[-1]

    def state() -> str:
        return str(processes.call("GET", f"/experiments/{made}/check-status", TOKEN)["status"])

    wait.until(lambda: state() in {"DONE", "ERROR"}, 120, "the end of the search")
    log = folder_of(deployment, made) / "log" / "strategy.log"
    assert state() == "DONE", log.read_text() if log.exists() else deployment.processes.log("nas")
    return made


def folder_of(deployment: ComposeDeployment, experiment: str) -> Path:
    return deployment.processes.folder / "nni-experiments" / experiment


def attacks(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*/attack.json"))]


def test_trials_run_as_another_user_and_every_attack_fails(
    deployment: ComposeDeployment, experiment: str
) -> None:
    found = attacks(folder_of(deployment, experiment) / "trials")

    assert len(found) == 4
    assert [one["succeeded"] for one in found] == [[]] * 4
    assert {(one["uid"], one["gid"]) for one in found} == {(65533, 65533)}
    assert all(1 in one["processes"] for one in found)
    assert all(len(one["processes"]) >= 1 for one in found)
    assert any(one["warm"] for one in found)


def test_algorithm_hosts_run_as_another_user_and_every_attack_fails(
    deployment: ComposeDeployment, experiment: str
) -> None:
    (found,) = attacks(folder_of(deployment, experiment).parent / experiment)

    assert found["succeeded"] == []
    assert (found["uid"], found["gid"]) == (65531, 65531)
    assert 1 in found["processes"]


def test_strategies_of_other_machines_run_as_another_user_and_every_attack_fails(
    deployment: ComposeDeployment, search: str
) -> None:
    (found,) = attacks(folder_of(deployment, search).parent / search)

    assert found["succeeded"] == []
    assert (found["uid"], found["gid"]) == (65530, 65530)
    assert 1 in found["processes"]


def test_services_read_and_delete_what_trials_have_closed(
    deployment: ComposeDeployment, experiment: str
) -> None:
    folder = folder_of(deployment, experiment)
    closed = list(folder.glob("trials/*/closed/deep/own"))

    assert len(closed) == 4
    for path in closed:
        assert path.stat().st_uid == 65533
        assert path.parent.stat().st_mode & 0o070 == 0o070
        assert "written by name" in (path.parents[2] / "stdout").read_text()


def namespace_of(pid: int | str) -> str:
    return str(Path(f"/proc/{pid}/ns/pid").readlink())


def processes_of(deployment: ComposeDeployment, name: str) -> list[int]:
    """Return the processes of a container, by their numbers outside."""
    inside = namespace_of(deployment.processes.pid(name))
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if namespace_of(entry.name) == inside:
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def shown_of(pid: int, name: str) -> bytes:
    """Return a file of a process; empty if the process has ended since its number was read."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/{name}").read_bytes()
    return b""


@pytest.mark.parametrize("name", ORDER)
def test_no_process_of_a_container_has_a_secret_in_environment_or_arguments(
    deployment: ComposeDeployment, experiment: str, name: str
) -> None:
    pids = processes_of(deployment, name)

    assert pids
    for pid in pids:
        shown = shown_of(pid, "environ") + shown_of(pid, "cmdline")
        assert not [key for key, text in deployment.secrets.items() if text.encode() in shown]


def test_daemons_of_ended_trials_are_ended(deployment: ComposeDeployment, experiment: str) -> None:
    def daemons() -> list[int]:
        return [
            pid
            for pid in processes_of(deployment, "trial-runner")
            if shown_of(pid, "cmdline").startswith(b"sleep")
        ]

    wait.until(lambda: not daemons(), 60, "the end of daemons")

    assert daemons() == []


@pytest.mark.parametrize("name", ORDER)
def test_health_needs_no_token(deployment: ComposeDeployment, name: str) -> None:
    check = deployment.processes.health_port(name)

    for path in ("livez", "readyz"):
        with urlopen(f"http://127.0.0.1:{check}/{path}", timeout=60) as answer:
            assert answer.read() == b"OK\n"
    with pytest.raises(HTTPError, match="404"):
        urlopen(f"http://127.0.0.1:{check}/metrics", timeout=60)


def test_manager_deletes_the_folders_of_trials(
    deployment: ComposeDeployment, experiment: str
) -> None:
    processes = deployment.processes
    folder = folder_of(deployment, experiment)

    for words in (("stop", experiment), ("experiment", "delete", experiment)):
        done = processes.nnictl(*words, token=TOKEN)
        assert done.returncode == 0, done.stdout + done.stderr

    assert not folder.exists()
