"""The network morphism tuner as its documentation has it."""

import inspect
import json
import logging
from pathlib import Path

import pytest

from nni.algorithms.hpo.networkmorphism_tuner import NetworkMorphismTuner
from nni.errors import NoMoreTrialError
from nni.hpo.json_value import JsonValue
from nni.hpo.registry import factory
from nni.hpo.tuners.network_morphism.graph import json_to_graph


def small(**changes: JsonValue) -> NetworkMorphismTuner:
    arguments = {"input_width": 8, "default_model_len": 2, "default_model_width": 8, "seed": 0}
    return NetworkMorphismTuner(**{**arguments, **changes})


def played(tuner: NetworkMorphismTuner, trials: int) -> list[str]:
    """Play trials whose metric is how many layers they have."""
    texts = []
    for parameter_id in range(trials):
        text = tuner.generate_parameters(parameter_id)
        tuner.receive_trial_result(parameter_id, text, len(json.loads(text)["layer_list"]))
        tuner.trial_end(parameter_id, True)
        texts.append(text)
    return texts


@pytest.mark.claim("hpo", 39)
def test_first_configuration_is_the_text_of_the_default_network() -> None:
    text = NetworkMorphismTuner().generate_parameters(0)

    assert isinstance(text, str)
    graph = json_to_graph(text)
    assert (len(graph.layers), len(graph.shapes), graph.shapes[-1]) == (17, 18, (10,))


@pytest.mark.claim("hpo", 40)
def test_other_tasks_are_refused() -> None:
    with pytest.raises(ValueError, match="task must be one of 'cv', got 'nlp'"):
        NetworkMorphismTuner(task="nlp")
    with pytest.raises(ValueError, match="task must be one of 'cv', got 'nlp'"):
        factory.validate("tuner", "NetworkMorphism", {"task": "nlp"}, {})


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"input_width": 0}, "input_width"),
        ({"algorithm_name": "Random"}, "algorithm_name"),
        ({"t_min": 1.0}, "t_min"),
        ({"max_model_size": 10}, "max_model_size must be >= "),
        ({"optimize_mode": "best"}, "optimize_mode"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, JsonValue], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        small(**arguments)


def test_no_architecture_is_proposed_twice() -> None:
    architectures = [json_to_graph(text).architecture for text in played(small(t_min=0.1), 25)]

    assert len(set(architectures)) == 25


@pytest.mark.parametrize(("mode", "sign"), [("maximize", 1), ("minimize", -1)])
def test_it_grows_what_does_well(mode: str, sign: int) -> None:
    tuner = small(optimize_mode=mode, beta=0.5)
    trials = 20
    for parameter_id in range(trials):
        text = tuner.generate_parameters(parameter_id)
        depth = len(json.loads(text)["layer_list"])
        tuner.receive_trial_result(parameter_id, text, {"default": sign * depth})

    assert tuner.get_metric_value_by_id(tuner.get_best_model_id()) == sign * len(
        tuner.load_best_model().layers
    )
    # From 13 layers; a morph adds at most five.
    assert len(tuner.load_best_model().layers) > 30


def test_best_model_can_be_looked_up() -> None:
    tuner = small()
    texts = played(tuner, 6)
    depths = [len(json.loads(text)["layer_list"]) for text in texts]

    best = tuner.get_best_model_id()

    assert best == depths.index(max(depths))
    assert tuner.load_best_model().to_json() == texts[best]
    assert tuner.load_model_by_id(2).to_json() == texts[2]
    with pytest.raises(ValueError, match="model_id"):
        tuner.load_model_by_id(99)


def test_no_best_model_without_a_result() -> None:
    with pytest.raises(ValueError, match="none was yet"):
        small().get_best_model_id()


def test_models_are_written_below_the_log_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NNI_LOG_DIRECTORY", str(tmp_path))
    tuner = small()

    texts = played(tuner, 3)

    folder = tmp_path / "model_path"
    assert (folder / "best_model.txt").read_text("utf-8") == str(tuner.get_best_model_id())
    assert [(folder / f"{i}.json").read_text("utf-8") for i in range(3)] == texts


def test_nothing_is_written_outside_of_an_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NNI_LOG_DIRECTORY", raising=False)
    monkeypatch.chdir(tmp_path)

    played(small(), 2)

    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_costs_the_files_only(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    tuner = small(path=str(tmp_path / "file" / "models"))

    assert len(played(tuner, 2)) == 2


def test_generate_gives_the_father_of_a_new_graph() -> None:
    tuner = small()
    played(tuner, 1)

    father, graph = tuner.generate()

    assert father == 0
    assert len(graph.operation_history) >= 1


def test_it_says_when_nothing_is_small_enough() -> None:
    text = small().generate_parameters(0)
    limited = small(max_model_size=json_to_graph(text).size())
    limited.generate_parameters(0)

    with pytest.raises(NoMoreTrialError, match="no architecture is left"):
        limited.generate_parameters(1)


def test_missing_folders_above_that_of_the_models_are_made(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"

    played(small(path=str(folder)), 2)

    assert len(list(tmp_path.rglob("0.json"))) == 1
    assert (next(tmp_path.rglob("0.json")).parent / "best_model.txt").exists()


@pytest.mark.parametrize(
    ("argument", "default"),
    [
        ("input_width", 32),
        ("input_channel", 3),
        ("n_output_node", 10),
        ("verbose", True),
        ("beta", 2.576),
        ("t_min", 0.0001),
        ("max_model_size", 16777216),
        ("default_model_len", 3),
        ("default_model_width", 64),
    ],
)
def test_default_arguments_are_the_documented_ones(argument: str, default: object) -> None:
    assert inspect.signature(NetworkMorphismTuner).parameters[argument].default == default


@pytest.mark.parametrize("mode", ["maximize", "minimize"])
def test_restored_search_has_the_same_best_model(mode: str) -> None:
    tuner, other = small(optimize_mode=mode), small(optimize_mode=mode)
    played(tuner, 4)

    other.load_state(json.loads(json.dumps(tuner.state())))

    assert other.get_best_model_id() == tuner.get_best_model_id()
    assert other.state() == tuner.state()


def test_added_model_is_reported() -> None:
    tuner = small()
    played(tuner, 2)

    assert tuner.add_model(0.5, 1) == {"model_id": 1, "metric_value": 0.5}


def test_trial_that_ends_without_a_result_is_dropped() -> None:
    tuner = small()
    text = tuner.generate_parameters(0)

    tuner.trial_end(0, False)
    tuner.receive_trial_result(0, text, 1.0)

    assert tuner.state()["running"] == []
    assert tuner.state()["models"] == []
    assert tuner.generate_parameters(1) != text


def test_result_without_a_number_is_no_model() -> None:
    tuner = small()
    text = tuner.generate_parameters(0)

    tuner.receive_trial_result(0, text, None)

    assert tuner.state()["models"] == []


@pytest.mark.parametrize("verbose", [True, False])
def test_new_architecture_is_logged_only_if_wanted(
    verbose: bool, caplog: pytest.LogCaptureFixture
) -> None:
    tuner = small(verbose=verbose)

    with caplog.at_level(logging.INFO):
        tuner.generate_parameters(0)

    assert ("architecture 0: first" in caplog.text) is verbose


def test_samples_are_ignored_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    tuner = small()
    before = tuner.state()

    tuner.import_data([{"parameter": "{}", "value": 1.0}])

    assert tuner.state() == before
    assert "ignores 1 imported samples" in caplog.text


def test_search_space_is_stored_without_an_effect() -> None:
    tuner, other = small(), small()

    tuner.update_search_space({"x": 1})

    assert tuner.search_space == {"x": 1}
    assert tuner.generate_parameters(0) == other.generate_parameters(0)


def test_first_architecture_may_have_the_greatest_size() -> None:
    size = json_to_graph(small().generate_parameters(0)).size()

    assert small(max_model_size=size).max_model_size == size
    with pytest.raises(ValueError, match=f"max_model_size must be >= {size}"):
        small(max_model_size=size - 1)


def test_restored_tuner_goes_on_with_running_trials() -> None:
    tuner, other = small(), small()
    played(tuner, 2)
    text = tuner.generate_parameters(2)

    other.load_state(json.loads(json.dumps(tuner.state())))
    other.receive_trial_result(2, text, 99.0)

    assert other.get_best_model_id() == 2
    assert other.load_best_model().to_json() == text


@pytest.mark.parametrize(
    "arguments",
    [
        {"input_width": 1, "default_model_len": 1},
        {"input_channel": 1},
        {"n_output_node": 1},
        {"beta": 0},
        {"t_min": 1e-9},
        {"t_min": 0.999},
        {"max_model_size": 2**53},
        {"default_model_len": 1},
        {"default_model_width": 1},
    ],
)
def test_least_and_greatest_arguments_are_accepted(arguments: dict[str, JsonValue]) -> None:
    assert json_to_graph(small(**arguments).generate_parameters(0)).layers


@pytest.mark.parametrize(
    "arguments",
    [
        {"input_channel": 0},
        {"n_output_node": 0},
        {"beta": -0.1},
        {"t_min": 0},
        {"max_model_size": 2**53 + 1},
        {"default_model_len": 0},
        {"default_model_len": 100},
        {"default_model_width": 0},
    ],
)
def test_arguments_beyond_their_limits_are_refused(arguments: dict[str, JsonValue]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(arguments))} must be"):
        small(**arguments)
