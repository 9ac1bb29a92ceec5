import pytest

from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import config_pb2, experiment_pb2
from nni_proto.trial.v1 import trial_pb2
from nni_wire.values import from_value, to_value
from svc_manager.converters.views import (
    algorithm_name,
    config_view,
    counts_view,
    experiment_view,
    exported_view,
    mask_value,
    trial_view,
)
from svc_manager.domain import inputs
from tests.unit.services.manager.building import Lab, encoded


def test_an_experiment_is_shown_with_counts_and_best_trial() -> None:
    lab = Lab()
    trial = lab.running()
    lab.finish(trial, 0.5)

    view = experiment_view(lab.experiment, lab.now_ms, agent_count=1)

    assert view.state == experiment_pb2.EXPERIMENT_STATE_RUNNING
    assert (view.best_trial_id, view.best_value) == (trial.id, 0.5)
    assert view.trial_counts["SUCCEEDED"] == 1


def test_empty_states_are_left_out_of_the_counts() -> None:
    lab = Lab()
    lab.finish(lab.running())

    assert 0 not in counts_view(lab.experiment).values()


def test_the_configuration_shows_what_updates_have_changed() -> None:
    lab = Lab()
    lab.command(
        inputs.Update(trial_concurrency=7, search_space=encoded({"y": {"_type": "choice"}}))
    )

    config = config_view(lab.experiment)

    assert config.trial_concurrency == 7
    assert from_value(config.search_space) == {"y": {"_type": "choice"}}


def test_texts_with_secret_names_are_masked_at_any_depth() -> None:
    value = to_value({"user": "u", "nested": [{"password": "hush"}], "api_token": "hush"})

    mask_value(value)

    assert "hush" not in str(from_value(value))
    assert from_value(value)["user"] == "u"


@pytest.mark.parametrize("kind", ["tuner", "advisor"])
def test_the_algorithm_has_the_name_of_the_configuration(kind: str) -> None:
    config = config_pb2.ExperimentConfig()
    getattr(config, kind).name = "TPE"

    assert algorithm_name(config) == "TPE"


def test_a_trial_is_shown_with_parameters_and_result() -> None:
    lab = Lab()
    trial = lab.running()
    lab.finish(trial, 0.25)

    view = trial_view(trial, "/root/e", "local")

    assert view.state == trial_pb2.TRIAL_STATE_SUCCEEDED
    assert from_value(view.parameters) == {"x": trial.parameter_id}
    assert from_value(view.final_metric.value) == 0.25


def test_an_export_holds_the_result() -> None:
    lab = Lab()
    trial = lab.running()
    lab.finish(trial, 0.25)

    exported = exported_view(trial, [])

    assert from_value(exported.parameters) == {"x": trial.parameter_id}
    assert isinstance(exported.value, value_pb2.Value)
    assert from_value(exported.value) == 0.25
