import pytest

from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import config_pb2, event_pb2, experiment_pb2
from nni_proto.trial.v1 import cause_pb2, trial_pb2
from nni_wire.values import from_value, to_value
from svc_common.experiment_events.causes import WaitCause, WaitReason
from svc_manager.converters.secret_texts import MASK, TextMask
from svc_manager.converters.views import (
    algorithm_name,
    config_view,
    counts_view,
    experiment_view,
    exported_view,
    mask_config,
    mask_event,
    mask_value,
    trial_view,
)
from svc_manager.domain import inputs
from svc_manager.domain.agent_limits import AgentLimits
from svc_manager.domain.experiment import ExperimentSettings
from svc_manager.domain.reports import ExitCause, Started
from tests.unit.services.manager.building import Lab, encoded, exited, lost, waits_for_gpus


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


def test_sections_of_platforms_show_changed_limits_of_agents() -> None:
    lab = Lab(settings=ExperimentSettings(pool="exp-expt1234"))
    config = config_pb2.ExperimentConfig()
    config.training_services.add(platform="ray", options=to_value({"maxAgents": 2}))
    lab.experiment.config = config.SerializeToString()

    lab.command(inputs.ChangeAgentLimits(AgentLimits(max_agents=8, max_agent_time_ms=7_200_000)))

    [service] = config_view(lab.experiment).training_services
    assert from_value(service.options) == {"maxAgents": 8, "maxAgentTime": "2h"}

    view = experiment_view(lab.experiment, lab.now_ms, agent_count=1)
    assert (view.agent_limits.max_agents, view.agent_limits.max_agent_time.seconds) == (8, 7_200)

    removed = AgentLimits(removed=("maxAgents", "maxAgentTime"))
    lab.command(inputs.ChangeAgentLimits(removed))

    [service] = config_view(lab.experiment).training_services
    assert from_value(service.options) == {}


TUNER = config_pb2.AlgorithmConfig(name="TPE", class_args=to_value({"api_token": "hush"}))


def test_configuration_and_name_are_those_of_the_tuner_that_took_over() -> None:
    lab = Lab()
    lab.command(inputs.ChangeTuner(TUNER.SerializeToString()))

    view = experiment_view(lab.experiment, lab.now_ms, agent_count=1)

    assert (view.config.tuner.name, view.algorithm) == ("TPE", "TPE")
    assert "hush" not in str(view)


def test_secrets_of_a_tuner_that_takes_over_are_masked_in_its_event() -> None:
    event = event_pb2.Event(
        algorithm_requested=event_pb2.AlgorithmRequested(generation=2, tuner=TUNER)
    )

    mask_event(event)

    assert event.algorithm_requested.tuner.name == "TPE"
    assert "hush" not in str(event)


def test_texts_with_secret_names_are_masked_at_any_depth() -> None:
    value = to_value({"user": "u", "nested": [{"password": "hush"}], "api_token": "hush"})
    value.map_value.entries.add(key="store", value=to_value(["redis://:hush@host"]))

    mask_value(value, TextMask())

    assert "hush" not in str(from_value(value))
    assert from_value(value)["user"] == "u"


def test_secrets_in_commands_and_in_texts_of_options_are_masked() -> None:
    config = config_pb2.ExperimentConfig(trial_command="API_KEY=abc python3 t.py")
    service = config.training_services.add(platform="slurm")
    service.options.CopyFrom(to_value({"setupLines": ["export TOKEN=abc", "module load x"]}))

    mask_config(config)

    assert config.trial_command == f"API_KEY={MASK} python3 t.py"
    assert from_value(config.training_services[0].options) == {
        "setupLines": [f"export TOKEN={MASK}", "module load x"]
    }


def test_texts_of_a_configuration_share_the_limit_of_names() -> None:
    config = config_pb2.ExperimentConfig(trial_command="a=b " * 5_000)
    config.tuner.class_args.CopyFrom(to_value({"x": "a=b"}))

    mask_config(config)

    assert from_value(config.tuner.class_args) == {"x": MASK}


def test_words_of_a_command_are_masked_after_their_options() -> None:
    words = ["train", "--api-key", "abc", "--max_tokens", "5", "--token", "--x", "-p", "y", "--pwd"]
    value = to_value([*words, ["z"]])

    mask_value(value, TextMask())

    assert from_value(value) == [*words[:2], MASK, *words[3:], MASK]


def test_variables_of_pods_are_masked_by_their_names() -> None:
    mode = {"name": "MODE", "value": "x"}
    value = to_value([{"value": "hush", "name": "WANDB_API_KEY"}, mode])

    mask_value(value, TextMask())

    masked = from_value(value)
    assert "hush" not in str(masked)
    assert masked[1] == mode


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


def test_a_trial_is_shown_with_its_causes() -> None:
    lab = Lab(settings=ExperimentSettings(max_trial_retries=1))
    trial = lab.running()
    lab.report(trial, 1, lost("power cut"))
    lab.report(trial, 0, waits_for_gpus(), claim="c2")
    waiting = trial_view(trial, "/root/e", "local")
    lab.report(trial, 1, Started(1), claim="c2")
    lab.command(inputs.KillTrial(trial.id))
    stopping = trial_view(trial, "/root/e", "local")
    lab.report(trial, 2, exited(None, ExitCause.STOPPED), claim="c2")

    ended = trial_view(trial, "/root/e", "local")

    assert waiting.wait.cause == cause_pb2.WAIT_CAUSE_GPU_IN_USE
    assert waiting.loss.detail == "power cut"
    assert waiting.reason == "waiting for 1 GPU"
    assert not waiting.HasField("end")
    assert not stopping.HasField("wait")
    assert stopping.stop.cause == cause_pb2.STOP_CAUSE_USER
    assert ended.end.cause == cause_pb2.END_CAUSE_STOPPED
    assert ended.end.stop.cause == cause_pb2.STOP_CAUSE_USER
    assert ended.reason == "killed by the user"


def test_a_time_limit_is_shown_as_the_reason() -> None:
    lab = Lab()
    trial = lab.running()
    lab.report(trial, 1, exited(None, ExitCause.TIME_LIMIT, "UserWarning: slow disk"))

    view = trial_view(trial, "/root/e", "local")

    assert "maxTrialDuration" in view.reason
    assert view.end.cause == cause_pb2.END_CAUSE_TIME_LIMIT
    assert view.end.stderr_tail == "UserWarning: slow disk"


def test_results_without_a_number_are_an_error_with_count_example_and_remedy() -> None:
    lab = Lab(learned_metrics=("default",))
    first = lab.running()
    lab.finish(first, "0.9")
    lab.finish(lab.running(), float("nan"))
    lab.finish(lab.running(), 0.5)

    (error,) = experiment_view(lab.experiment, lab.now_ms, agent_count=1).errors

    assert error.startswith("2 final results have no number")
    assert f"trial {first.id} reported '0.9'" in error
    assert error.endswith("report a number, or a dict with a number under 'default'")


def test_missing_metrics_of_several_objectives_are_named() -> None:
    lab = Lab(learned_metrics=("accuracy", "latency"))
    lab.finish(lab.running(), 0.5)

    (error,) = experiment_view(lab.experiment, lab.now_ms, agent_count=1).errors

    assert error.startswith("1 final result has no number")
    assert error.endswith("report a dict with a number under each of 'accuracy', 'latency'")


def test_custom_algorithms_get_any_result_without_an_error() -> None:
    lab = Lab(learned_metrics=())
    lab.finish(lab.running(), "text")

    assert not experiment_view(lab.experiment, lab.now_ms, agent_count=1).errors


def test_algorithm_of_an_exploration_is_its_strategy() -> None:
    config = config_pb2.ExperimentConfig(nas=config_pb2.NasConfig(strategy="Random"))

    assert algorithm_name(config) == "Random"


def test_trial_that_no_agent_has_shows_the_reason_of_its_platform() -> None:
    refused = WaitReason(WaitCause.PLATFORM, detail="login refused", remedy="give a password")
    lab = Lab(settings=ExperimentSettings(pool="exp-a"))
    waiting = trial_view(lab.waiting(), "/root/e", "p", refused)
    running = trial_view(lab.running(), "/root/e", "p", refused)

    assert waiting.reason == "waiting for an agent of its pool: login refused"
    assert (waiting.wait.cause, waiting.wait.remedy) == (
        cause_pb2.WAIT_CAUSE_PLATFORM,
        "give a password",
    )
    assert not running.HasField("wait")
