"""The example of a search through the service runs as its README says, with fewer networks."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from nni.experiment.client import ManagerClient
from nni.experiment.local_shape import running_endpoint
from nni_proto.trial.v1 import trial_pb2, trial_service_pb2
from tests.support.joined_machines import Desk, front_shape, invited, joined_agents
from tests.support.local_shape import LocalShape
from tests.support.nnictl import Nnictl, shared_shape
from tests.support.wait import until

__all__ = ["front_shape", "shared_shape"]  # fixtures

EXAMPLE = Path(__file__).parents[2] / "examples" / "nas" / "service"
TIMEOUT_S = 120.0
PRINTED = re.compile(r"\d+\.\d\d %  \{'second': .*'width': \d+\}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Copy of the example, as a user has it."""
    ignored = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(EXAMPLE, tmp_path / "service", ignore=ignored))


@pytest.fixture
def desks(front_shape: LocalShape, folder: Path, tmp_path: Path) -> Iterator[list[Desk]]:
    """Two machines that have joined the pool of the example, with a slot each."""
    pytest.importorskip("cryptography")
    nnictl = Nnictl(front_shape)
    front_shape.start()
    nnictl("pool", "create", folder / "pool.yml")
    desks = invited(nnictl, tmp_path / "first", tmp_path / "second")
    with ExitStack() as stack:
        for desk in desks:
            agent = stack.enter_context(desk.join(slots=1))
            stack.callback(agent.kill)
        states = ["RUNNING", "RUNNING"]
        until(lambda: list(joined_agents(nnictl).values()) == states, TIMEOUT_S, "two agents")
        yield desks


@pytest.mark.timeout(240)
def test_script_and_commands_find_networks(shared_shape: LocalShape, folder: Path) -> None:

    def run(line: str) -> str:
        return shared_shape.run(["bash", "-c", f"cd {folder} && {line}"], timeout_s=150).stdout

    printed = run(f"{sys.executable} search.py --models 3 --epochs 1")
    listed = json.loads(run("nnictl nas list --json"))
    (search,) = listed
    top = json.loads(run(f"nnictl nas top {search['id']} --json"))

    rows = [line for line in printed.splitlines() if "width" in line]
    assert len(rows) == 2
    assert all(PRINTED.fullmatch(row) for row in rows)
    assert search["strategy"] == "RegularizedEvolution"
    assert len(top) == 3
    assert top[0]["value"] >= top[1]["value"]
    assert set(top[0]["sample"]) == {"second", "dropout", "width"}


@pytest.mark.timeout(400)
@pytest.mark.usefixtures("desks")
def test_networks_of_a_pool_are_trained_by_both_of_its_agents(
    front_shape: LocalShape, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NNI_HOME", str(front_shape.home))
    command = f"cd {folder} && {sys.executable} search.py --models 4 --epochs 1 --pool desks"

    printed = front_shape.run(["bash", "-c", command], timeout_s=240).stdout

    rows = [line for line in printed.splitlines() if "width" in line]
    assert len(rows) == 2
    assert all(PRINTED.fullmatch(row) for row in rows)
    (search,) = Nnictl(front_shape).json("nas", "list", "--json")
    with ManagerClient(running_endpoint()) as client:
        request = trial_service_pb2.ListTrialsRequest(experiment_id=search["id"])
        trials = list(client.trials(request))
    assert [trial.state for trial in trials] == [trial_pb2.TRIAL_STATE_SUCCEEDED] * 4
    agents = joined_agents(Nnictl(front_shape))
    assert {trial.runner_id for trial in trials} == set(agents)
    assert len(agents) == 2
