import json

import pytest

from nni.cli.main import DONE, FAILED, main
from nni_proto.experiment.v1 import experiment_service_pb2 as pb
from nni_proto.runner.v1 import pool_pb2, runner_service_pb2
from tests.support.in_memory_manager import InMemoryManager


@pytest.fixture
def agents(manager: InMemoryManager) -> InMemoryManager:
    trial = runner_service_pb2.RunnerTrial(
        experiment_id="abcd1234", trial_id="aBcDe", attempt=2, warm=True, waiting_for="a GPU"
    )
    manager.agents = [
        pb.RunnerSummary(runner_id="box-1", pool="local", host_name="box", trials=[trial]),
        pb.RunnerSummary(runner_id="box-2", pool="gpu", gpu_count=4, draining=True),
    ]
    return manager


def test_list_has_a_line_per_agent(
    agents: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runner", "list"]) == DONE

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if "box-" in line] == ["box-1", "box-2"]


def test_show_prints_the_trials_of_an_agent(
    agents: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runner", "show", "box-1"]) == DONE
    shown = capsys.readouterr().out
    assert "pool: local" in shown
    assert "aBcDe" in shown
    assert "a GPU" in shown

    assert main(["runner", "show", "box-2", "--json"]) == DONE
    record = json.loads(capsys.readouterr().out)
    assert (record["gpuCount"], record["draining"], record["trials"]) == (4, True, [])


def test_drain_names_the_agent_by_the_start_of_its_id(agents: InMemoryManager) -> None:
    agents.agents = agents.agents[:1]

    assert main(["runner", "drain", "box"]) == DONE

    assert agents.drained == ["box-1"]


@pytest.mark.parametrize("word", ["box", "nope"])
def test_ambiguous_or_unknown_id_lists_the_known_ones(
    word: str, agents: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runner", "drain", word]) == FAILED

    assert "known are: box-1, box-2" in capsys.readouterr().err
    assert agents.drained == []


def test_list_shows_agents_that_a_platform_is_asked_for(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.agents = [
        pb.RunnerSummary(
            runner_id="nni-abcdefgh-exp-a-1",
            pool="exp-a",
            platform="slurm",
            state=pool_pb2.POOL_AGENT_STATE_PENDING,
            slots=4,
            reason="Resources",
        )
    ]

    assert main(["runner", "list"]) == DONE
    line = capsys.readouterr().out.splitlines()[-1]

    assert line.split() == [
        "nni-abcdefgh-exp-a-1",
        "exp-a",
        "slurm",
        "PENDING",
        "4",
        "0",
        "0",
        "Resources",
    ]
