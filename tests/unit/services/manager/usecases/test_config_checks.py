from pathlib import Path

import pytest

from nni_proto.experiment.v1 import config_pb2
from nni_wire.values import to_value
from svc_common.errors import InvalidArgumentError
from svc_manager.usecases.config_checks import check_config, choose_algorithm


def config() -> config_pb2.ExperimentConfig:
    made = config_pb2.ExperimentConfig(
        trial_command="python3 trial.py",
        trial_concurrency=1,
        trial_code_directory="/code",
        experiment_working_directory="/root",
    )
    made.search_space.CopyFrom(to_value({}))
    made.tuner.name = "TPE"
    return made


def refused(made: config_pb2.ExperimentConfig) -> str:
    with pytest.raises(InvalidArgumentError) as refusal:
        check_config(made)
    return refusal.value.field


@pytest.mark.claim("platform", 2)
def test_an_empty_search_space_is_accepted_and_none_is_not() -> None:
    made = config()
    check_config(made)

    made.ClearField("search_space")

    assert refused(made) == "search_space"


@pytest.mark.parametrize(("character", "longest"), [("x", 131_071), ("é", 65_535)])
def test_a_command_is_no_longer_than_linux_starts(character: str, longest: int) -> None:
    made = config()
    made.trial_command = character * longest
    check_config(made)

    made.trial_command = character * (longest + 1)

    assert refused(made) == "trial_command"


def test_a_model_graph_is_a_map() -> None:
    made = config()
    made.model_graph.CopyFrom(to_value({"graphs": []}))
    check_config(made)

    made.model_graph.CopyFrom(to_value([]))

    assert refused(made) == "model_graph"


@pytest.mark.claim("platform", 8)
def test_an_advisor_goes_without_tuner_and_assessor() -> None:
    made = config()
    made.advisor.name = "Hyperband"
    assert refused(made) == "advisor"

    made.ClearField("tuner")

    check_config(made)


def test_an_algorithm_must_be_named() -> None:
    made = config()
    made.tuner.Clear()

    assert refused(made) == "tuner"


def test_without_an_algorithm_the_default_tuner_decides() -> None:
    made = config()
    made.ClearField("tuner")

    choose_algorithm(made)

    assert made.tuner.name == "auto"


def test_an_advisor_gets_no_tuner_beside_it() -> None:
    made = config()
    made.ClearField("tuner")
    made.advisor.name = "ASHA"

    choose_algorithm(made)

    assert not made.HasField("tuner")


def test_durations_must_be_positive() -> None:
    made = config()
    made.max_experiment_duration.FromSeconds(0)
    assert refused(made) == "max_experiment_duration"

    made.max_experiment_duration.FromSeconds(1)
    made.max_trial_duration.FromSeconds(-1)

    assert refused(made) == "max_trial_duration"


def test_paths_must_be_absolute_and_names_bounded() -> None:
    made = config()
    made.trial_code_directory = "../code"
    assert refused(made) == "trial_code_directory"

    made = config()
    made.experiment_name = "x" * 1001

    assert refused(made) == "experiment_name"


def test_search_sections_are_for_tuners_and_within_limits() -> None:
    made = config()
    made.search.duplicates = "reuse"
    made.search.stop.no_improvement = 3
    check_config(made)

    made.search.stop.no_improvement = 0
    assert refused(made) == "search.stop.no_improvement"
    made.search.stop.ClearField("no_improvement")
    made.search.stop.regret_bound = 0
    assert refused(made) == "search.stop.regret_bound"
    made.search.ClearField("stop")
    made.search.duplicates = "again"
    assert refused(made) == "search.duplicates"
    made.search.duplicates = ""
    made.tuner.server_address = "127.0.0.1:1"
    assert refused(made) == "search"


def test_several_objectives_have_no_stopping_rules() -> None:
    made = config()
    made.search.stop.target = 1.0
    made.objectives.add(metric="a")
    check_config(made)

    made.objectives.add(metric="b")

    assert refused(made) == "search.stop"


def test_platform_that_another_package_adds_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "queues-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: queues\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[nni.platforms]\nqueue = queues:entry\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    given = config()
    given.training_services.add(platform="queue")

    check_config(given)

    given.training_services[0].platform = "queue-2"
    with pytest.raises(InvalidArgumentError, match="must be one of"):
        check_config(given)
