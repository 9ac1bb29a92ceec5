"""The section `search`."""

import json
from pathlib import Path
from typing import Any

import pytest

from nni.experiment.config.experiment_config import ExperimentConfig
from nni.experiment.config.search_config import SearchConfig
from nni.experiment.conversion import config_from_proto, config_to_proto
from nni.experiment.errors import ConfigError
from nni_wire.values import from_value

SPACE: dict[str, Any] = {
    "x": {"_type": "uniform", "_value": [0, 1]},
    "_constraints": ["x < 0.5"],
}


def experiment(folder: Path, **fields: Any) -> ExperimentConfig:
    return ExperimentConfig(
        trial_command="python3 trial.py",
        trial_code_directory=folder,
        trial_concurrency=1,
        training_service={"platform": "local"},
        **{"search_space": SPACE, "tuner": {"name": "TPE"}, **fields},
    )


def problems(config: ExperimentConfig) -> str:
    with pytest.raises(ConfigError) as caught:
        config.validate()
    return str(caught.value)


def test_survives_the_wire(tmp_path: Path) -> None:
    search = {
        "duplicates": "reuse",
        "enqueue": [{"x": 0.25}],
        "warmStartFrom": ["abcd1234"],
        "warmStartBy": "rank",
        "stop": {"noImprovement": 5, "target": 0.0, "regretBound": 0.1},
    }
    config = experiment(tmp_path, search=search)
    config.validate()

    back = config_from_proto(config_to_proto(config))

    assert back.search == config.search
    assert config.to_dict()["search"] == search


def test_files_become_samples_and_the_rest_are_ids(tmp_path: Path) -> None:
    path = tmp_path / "earlier.json"
    path.write_text(json.dumps([{"parameter": {"x": 0.5}, "value": 2}]))
    config = experiment(tmp_path, search={"warm_start_from": ["abcd1234", str(path)]})

    message = config_to_proto(config).search

    assert list(message.warm_start_from) == ["abcd1234"]
    assert from_value(message.known) == [{"parameter": {"x": 0.5}, "value": 2}]


def test_files_that_enter_by_rank_are_a_search_each(tmp_path: Path) -> None:
    paths = [tmp_path / "one.json", tmp_path / "two.json"]
    for path in paths:
        path.write_text(json.dumps([{"parameter": {"x": 0.5}, "value": 2}]))
    search = SearchConfig(warm_start_from=["abcd1234"]).model_copy(update={"warm_start_by": "rank"})
    config = experiment(tmp_path, search=search.with_related(list(map(str, paths))))
    config.validate()

    message = config_to_proto(config).search

    assert message.warm_start_by == "rank"
    assert list(message.warm_start_from) == ["abcd1234"]
    assert from_value(message.earlier) == [[{"parameter": {"x": 0.5}, "value": 2}]] * 2
    assert not message.HasField("known")
    back = config_from_proto(config_to_proto(config)).search
    assert back is not None
    assert back.warm_start_by == "rank"


def test_related_tasks_are_not_mixed_with_results_by_value() -> None:
    assert SearchConfig().with_related(["abcd1234"]).warm_start_by == "rank"
    with pytest.raises(ValueError, match="enters by value"):
        SearchConfig(warm_start_from=["abcd1234"]).with_related(["efgh5678"])


def test_points_that_break_a_constraint_are_refused(tmp_path: Path) -> None:
    text = problems(experiment(tmp_path, search={"enqueue": [{"x": 0.1}, {"x": 0.9}]}))

    assert "search.enqueue[1] must keep the constraint x < 0.5" in text


def test_advisors_for_one_number_take_no_several_objectives(tmp_path: Path) -> None:
    two = [{"metric": "a", "mode": "minimize"}, {"metric": "b", "mode": "minimize"}]
    config = experiment(
        tmp_path,
        search_space={"x": SPACE["x"]},
        tuner=None,
        advisor={"name": "Hyperband"},
        objectives=two,
    )

    assert "optimize_mode must be one of" in problems(config)

    config.objectives = config.objectives[:1]
    config.validate()


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    two = [{"metric": "a", "mode": "minimize"}, {"metric": "b", "mode": "minimize"}]
    advisor = {"tuner": None, "advisor": {"name": "Hyperband"}}

    assert "is for a tuner" in problems(experiment(tmp_path, search={}, **advisor))
    assert "needs a single objective" in problems(
        experiment(tmp_path, search={"stop": {"target": 1.0}}, objectives=two)
    )
    assert "earlier.json" in problems(
        experiment(tmp_path, search={"warm_start_from": ["./earlier.json"]})
    )
    with pytest.raises(ConfigError, match="duplicates"):
        SearchConfig(duplicates="again")  # type: ignore[arg-type] # what a user may write
