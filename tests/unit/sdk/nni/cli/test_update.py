from pathlib import Path

import pytest

from nni.cli.main import DONE, REFUSED, main
from nni_proto.experiment.v1 import config_pb2
from nni_wire.values import from_value
from tests.support.in_memory_manager import InMemoryManager


@pytest.fixture
def config(manager: InMemoryManager) -> config_pb2.ExperimentConfig:
    return manager.add_experiment("abcd1234").config


def test_concurrency_is_set(config: config_pb2.ExperimentConfig) -> None:
    assert main(["update", "concurrency", "--value", "4"]) == DONE

    assert config.trial_concurrency == 4


def test_trial_number_is_set(
    config: config_pb2.ExperimentConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["update", "trialnum", "abcd", "-v", "40"]) == DONE

    assert config.max_trial_number == 40
    assert "Update maxTrialNumber success!" in capsys.readouterr().out


def test_duration_has_a_unit(config: config_pb2.ExperimentConfig) -> None:
    assert main(["update", "duration", "--value", "1.5h"]) == DONE

    assert config.max_experiment_duration.seconds == 5400


def test_search_space_comes_from_a_file(
    config: config_pb2.ExperimentConfig, tmp_path: Path
) -> None:
    path = tmp_path / "space.json"
    path.write_text('{"x": {"_type": "choice", "_value": [1]}}')

    assert main(["update", "searchspace", "--filename", str(path)]) == DONE

    assert from_value(config.search_space) == {"x": {"_type": "choice", "_value": [1]}}


def test_tuner_comes_from_a_file(config: config_pb2.ExperimentConfig, tmp_path: Path) -> None:
    path = tmp_path / "tuner.yml"
    path.write_text("tuner:\n  name: TPE\n  classArgs: {optimize_mode: minimize}\n")

    assert main(["update", "tuner", "--filename", str(path)]) == DONE

    assert config.tuner.name == "TPE"
    assert from_value(config.tuner.class_args) == {"optimize_mode": "minimize"}


def test_limits_of_agents_are_options(manager: InMemoryManager) -> None:
    manager.add_experiment("abcd1234")
    words = ["--max-agents", "8", "--max-agent-time", "50h", "--max-cost", "75"]
    words += ["--remove", "min-agents", "--remove", "idleTime"]

    assert main(["update", "agents", "abcd", *words]) == DONE

    expected = config_pb2.AgentLimits(
        max_agents=8, max_cost=75.0, removed=["minAgents", "idleTime"]
    )
    expected.max_agent_time.seconds = 180_000
    assert manager.agent_limits == {"abcd1234": expected}


@pytest.mark.parametrize(
    "words",
    [
        ["concurrency", "-v", "0"],
        ["trialnum", "-v", "many"],
        ["duration", "-v", "soon"],
        ["searchspace", "-f", "missing.json"],
        ["tuner", "-f", "missing.yml"],
        ["agents"],
        ["agents", "--max-agents", "0"],
        ["agents", "--max-agent-time", "soon"],
        ["agents", "--max-cost", "nan"],
        ["agents", "--remove", "max-agent"],
        ["agents", "--remove", "max-cost", "--max-cost", "2"],
    ],
)
def test_wrong_value_is_refused_before_a_call(words: list[str]) -> None:
    assert main(["update", *words]) == REFUSED
