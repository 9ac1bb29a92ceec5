"""Converters of the state to proto messages for clients, without secrets."""

from collections.abc import Iterable, Mapping
from typing import Final

from nni_proto.common.v1 import metric_pb2, remarks_pb2, value_pb2
from nni_proto.experiment.v1 import (
    config_pb2,
    event_pb2,
    experiment_pb2,
    experiment_service_pb2,
)
from nni_proto.trial.v1 import trial_pb2, trial_service_pb2
from nni_wire.pools import experiment_of_pool
from nni_wire.values import from_value
from svc_common.experiment_events.cause_text import wait_text
from svc_common.experiment_events.causes import WaitReason
from svc_manager.converters.agent_limits import apply_limits, write_agent_limits
from svc_manager.converters.reasons import write_end, write_loss, write_stop, write_wait
from svc_manager.converters.scalars import set_ms, write_metric
from svc_manager.converters.secret_names import is_secret_of_option, names_secret, variable_name
from svc_manager.converters.secret_texts import MASK, TextMask
from svc_manager.domain.explanation import trial_text
from svc_manager.domain.remarks import Remarks
from svc_manager.domain.state import Experiment
from svc_manager.domain.trial import Trial, TrialState
from svc_manager.domain.values import DEFAULT_METRIC
from svc_manager.domain.waiting import waiting_for

_EXAMPLE_CHARACTERS: Final = 120
"""Characters of a user's value that an error quotes."""


def experiment_view(
    experiment: Experiment,
    now_ms: int,
    agent_count: int,
    platform_wait: WaitReason | None = None,
) -> experiment_pb2.Experiment:
    """Convert an experiment's state to its proto message for clients, with secrets masked.

    Args:
        experiment: its state.
        now_ms: present time.
        agent_count: live agents of its pool.
        platform_wait: why the platforms of its pool start no agent; None: no reason is known.
    """
    view = experiment_pb2.Experiment(
        id=experiment.id,
        state=experiment.state.value,  # type: ignore[arg-type] # the contract's numbers
        config=config_view(experiment),
        revision=experiment.revision,
        next_sequence_id=len(experiment.trials),
        trial_counts={
            state.name: count for state, count in sorted(experiment.counts.items()) if count
        },
        errors=[*experiment.errors, *_no_number_error(experiment)],
        waiting_for=waiting_for(experiment, agent_count, platform_wait),
        directory=experiment.directory,
        port=experiment.port,
        url_prefix=experiment.url_prefix,
        repeatable=experiment.repeatable,
        best_trial_id=experiment.best_trial_id,
    )
    view.algorithm = algorithm_name(view.config)
    set_ms(view.created_at, experiment.created_at_ms)
    if experiment.started_at_ms:
        set_ms(view.started_at, experiment.started_at_ms)
    if experiment.ended_at_ms:
        set_ms(view.ended_at, experiment.ended_at_ms)
    set_ms(view.execution_time, experiment.execution_time_ms(now_ms))
    if experiment.best_value is not None:
        view.best_value = experiment.best_value
    if "" in experiment.remarks:
        write_remarks(view.remarks, experiment.remarks[""])
    if experiment_of_pool(experiment.settings.pool) is not None:
        view.agent_limits.SetInParent()
        write_agent_limits(view.agent_limits, experiment.budget.agents)
    return view


def write_remarks(message: remarks_pb2.Remarks, remarks: Remarks) -> None:
    """Write note, tags and star into their proto message, replacing its tags."""
    message.note = remarks.note
    message.tags[:] = remarks.tags
    message.starred = remarks.starred


def _no_number_error(experiment: Experiment) -> list[str]:
    """Return one error text, with an example, if a final result has no number to learn; or []."""
    count = experiment.unlearned_count
    if not count:
        return []
    example = experiment.trials[experiment.unlearned_trial_id]
    assert example.final is not None, "it was counted for its final result"
    value = value_pb2.Value.FromString(example.final.value)
    text = repr(from_value(value))
    metrics = experiment.algorithm.learned_metrics or (DEFAULT_METRIC,)
    remedy = (
        "report a number, or a dict with a number under 'default'"
        if metrics == (DEFAULT_METRIC,)
        else f"report a dict with a number under each of {', '.join(map(repr, metrics))}"
    )
    results = "1 final result has" if count == 1 else f"{count} final results have"
    effect = "no number, so that the algorithm learns nothing from the trial"
    reported = f"trial {example.id} reported {text[:_EXAMPLE_CHARACTERS]}"
    return [f"{results} {effect}: {reported}; {remedy}"]


def config_view(experiment: Experiment) -> config_pb2.ExperimentConfig:
    """Return the experiment's configuration with later updates applied and secrets masked."""
    config = current_config(experiment)
    mask_config(config)
    return config


def current_config(experiment: Experiment) -> config_pb2.ExperimentConfig:
    """Return the experiment's configuration with later updates applied; secrets are not masked."""
    config = config_pb2.ExperimentConfig()
    config.ParseFromString(experiment.config)
    budget = experiment.budget
    config.trial_concurrency = budget.trial_concurrency
    if budget.max_trial_number is not None:
        config.max_trial_number = budget.max_trial_number
    if budget.max_duration_ms is not None:
        set_ms(config.max_experiment_duration, budget.max_duration_ms)
    apply_limits(config.training_services, budget.agents)
    if experiment.code_directory:
        config.trial_code_directory = experiment.code_directory
    if experiment.search_space is not None:
        config.search_space.ParseFromString(experiment.search_space)
    if experiment.tuner is not None:
        config.tuner.ParseFromString(experiment.tuner)
    return config


def mask_config(config: config_pb2.ExperimentConfig) -> None:
    """Mask, in place, secrets in the command, platform options and arguments of algorithms."""
    texts = TextMask()
    config.trial_command = texts(config.trial_command)
    for service in config.training_services:
        mask_value(service.options, texts)
    for algorithm in (config.tuner, config.assessor, config.advisor):
        if algorithm.HasField("class_args"):
            mask_value(algorithm.class_args, texts)


def mask_event(event: event_pb2.Event) -> None:
    """Mask, in place, secrets in a created event's configuration or in a new tuner's arguments."""
    if event.HasField("experiment_created"):
        mask_config(event.experiment_created.config)
    elif event.algorithm_requested.tuner.HasField("class_args"):
        mask_value(event.algorithm_requested.tuner.class_args, TextMask())


def mask_value(value: value_pb2.Value, texts: TextMask) -> None:
    """Replace, in place, every value whose key names a secret by a mask, at any depth.

    The value of a variable `{name: …, value: …}` is masked if its name does, a text that follows
    such an option in a list, and what `texts` finds in other texts.
    """
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        value.string_value = texts(value.string_value)
    elif kind == "map_value":
        entries = value.map_value.entries
        variable = variable_name({entry.key: entry.value.string_value for entry in entries})
        for entry in entries:
            name = variable if variable and entry.key == "value" else entry.key
            if names_secret(name) and entry.value.WhichOneof("kind") is not None:
                entry.value.string_value = MASK
            else:
                mask_value(entry.value, texts)
    elif kind == "list_value":
        before = ""
        for item in value.list_value.items:
            text = item.string_value
            if is_secret_of_option(before, text):
                item.string_value = MASK
            else:
                mask_value(item, texts)
            before = text


def algorithm_name(config: config_pb2.ExperimentConfig) -> str:
    """Return the algorithm's name: strategy, pruner, or advisor's or tuner's name, class, address.

    For a compression job it is that of the pruner, for an exploration the strategy's class.
    """
    if config.HasField("nas"):
        return config.nas.strategy
    if config.HasField("compression"):
        return compression_algorithm(config.compression.job)
    algorithm = config.advisor if config.HasField("advisor") else config.tuner
    source = algorithm.WhichOneof("source")
    if source == "name":
        return algorithm.name
    if source == "custom":
        return algorithm.custom.class_name
    return algorithm.server_address


def compression_algorithm(job: value_pb2.Value) -> str:
    """Return `algorithm.name` of the description of a compression job; empty: it has none."""
    return _entry(_entry(job, "algorithm"), "name").string_value


def _entry(value: value_pb2.Value, key: str) -> value_pb2.Value:
    found = (entry.value for entry in value.map_value.entries if entry.key == key)
    return next(found, value_pb2.Value())


def trial_view(
    trial: Trial, directory: str, platform: str, platform_wait: WaitReason | None = None
) -> trial_pb2.Trial:
    """Convert a trial's state to its proto message for clients, with its folder and platform.

    Args:
        trial: the trial.
        directory: folder of its experiment.
        platform: where it runs; empty: not known.
        platform_wait: why the platforms of its pool start no agent; None: no reason is known.
    """
    view = trial_pb2.Trial(
        id=trial.id,
        state=trial.state.value,  # type: ignore[arg-type] # the contract's numbers
        sequence_id=trial.sequence_id,
        parameter_id=trial.parameter_id,
        source=trial.source.value,  # type: ignore[arg-type] # the contract's numbers
        attempt=trial.attempt,
        runner_id=trial.runner_id,
        reason=trial_text(trial),
        intermediate_count=trial.intermediate_count,
        directory=f"{directory}/trials/{trial.id}",
        platform=platform,
        gpu_indices=trial.gpu_indices,
    )
    view.parameters.MergeFromString(trial.parameters)
    if trial.provenance:
        view.provenance.MergeFromString(trial.provenance)
    set_ms(view.created_at, trial.created_at_ms)
    if trial.started_at_ms:
        set_ms(view.started_at, trial.started_at_ms)
    if trial.ended_at_ms:
        set_ms(view.ended_at, trial.ended_at_ms)
    if trial.exit_code is not None:
        view.exit_code = trial.exit_code
    _write_causes(view, trial)
    if platform_wait is not None and _waits_for_agent(trial):
        view.reason = wait_text(platform_wait)
        write_wait(view.wait, platform_wait)
    if trial.final is not None:
        write_metric(view.final_metric, trial.final)
    if trial.last_intermediate is not None:
        write_metric(view.last_intermediate, trial.last_intermediate)
    return view


def _waits_for_agent(trial: Trial) -> bool:
    return trial.state is TrialState.WAITING and not trial.claim_id and trial.wait is None


def _write_causes(view: trial_pb2.Trial, trial: Trial) -> None:
    if trial.end is not None:
        write_end(view.end, trial.end)
    if trial.stop is not None:
        write_stop(view.stop, trial.stop)
    if trial.wait is not None:
        write_wait(view.wait, trial.wait)
    if trial.lost_attempts:
        write_loss(view.loss, trial.lost_attempts[-1].loss)
    if trial.checkpoint is not None:
        view.checkpoint_step = trial.checkpoint.step


def exported_view(
    trial: Trial, metrics: Iterable[trial_service_pb2.TrialMetric]
) -> experiment_service_pb2.ExportedTrial:
    """Convert a trial to its export message: parameters, final result, intermediate metrics."""
    view = experiment_service_pb2.ExportedTrial(trial_id=trial.id)
    view.parameters.MergeFromString(trial.parameters)
    if trial.final is not None:
        view.value.MergeFromString(trial.final.value)
    view.intermediates.extend(
        row.metric.value for row in metrics if row.metric.type == metric_pb2.METRIC_TYPE_PERIODICAL
    )
    return view


def counts_view(experiment: Experiment) -> Mapping[str, int]:
    """Return the number of trials by state name, without empty states."""
    return {state.name: count for state, count in sorted(experiment.counts.items()) if count}
