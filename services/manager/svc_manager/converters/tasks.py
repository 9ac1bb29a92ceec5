"""Converters of tasks and control messages for agents."""

from typing import Final

from nni_proto.experiment.v1 import config_pb2
from nni_proto.runner.v1 import task_pb2
from nni_wire.pools import LOCAL_POOL, POOL_PLATFORM
from svc_common.experiment_events.cause_text import stop_text
from svc_manager.converters.reasons import write_stop
from svc_manager.converters.reports import write_trial_checkpoint
from svc_manager.converters.shared_storage import storage_of
from svc_manager.domain.effects import SendDrop, SendStop
from svc_manager.domain.state import Experiment
from svc_manager.domain.trial import Trial
from svc_manager.domain.values import ParameterSource

ENVIRONMENT_FILE: Final = "environment.json"
"""File with the client's environment, in an experiment's folder."""

_SOURCE_NAMES = {
    ParameterSource.ALGORITHM: "algorithm",
    ParameterSource.CUSTOMIZED: "customized",
}


def spec_of(experiment: Experiment, *, bytes_travel: bool = False) -> task_pb2.TrialSpec:
    """Build the part of a task that all trials share; `bytes_travel`: checkpoints are stored.

    Args:
        experiment: its state.
        bytes_travel: whether agents share no folders with this manager.
    """
    config = config_pb2.ExperimentConfig()
    config.ParseFromString(experiment.config)
    spec = task_pb2.TrialSpec(
        command=config.trial_command,
        code_directory=experiment.code_directory or config.trial_code_directory,
        experiment_directory=experiment.directory,
        environment_file=(
            f"{experiment.directory}/{ENVIRONMENT_FILE}" if experiment.environment_sha256 else ""
        ),
    )
    # The checkpoints of a compression job are its results, which clients fetch from the store.
    here = experiment.settings.pool == LOCAL_POOL
    spec.checkpoints_travel = bytes_travel or config.HasField("compression") or not here
    if config.HasField("code_archive"):  # its agents need no folder of this machine
        spec.code_archive.CopyFrom(config.code_archive)
        spec.outputs_travel = storage_of(config) is None
        spec.ClearField("experiment_directory")
        spec.ClearField("environment_file")
    if config.HasField("trial_gpu_number"):
        spec.gpu_number = config.trial_gpu_number
    if config.HasField("max_trial_duration"):
        spec.time_limit.CopyFrom(config.max_trial_duration)
    platforms = {service.platform for service in config.training_services}
    if (
        len(platforms) == 1 and POOL_PLATFORM not in platforms
    ):  # an agent of several platforms' pool knows its own
        spec.platform = platforms.pop()
    if config.training_services and here:  # the options of another platform are not the trials'
        spec.platform_options.CopyFrom(config.training_services[0].options)
    return spec


def task_of(
    experiment_id: str, trial: Trial, spec: task_pb2.TrialSpec, log_sequence: int
) -> task_pb2.TrialTask:
    """Build the task of a trial's current attempt from its parameters and the shared part.

    Args:
        experiment_id: experiment of the trial.
        trial: the trial.
        spec: shared part of the task.
        log_sequence: sequence of the last appended batch; the same for all messages below.
    """
    task = task_pb2.TrialTask(
        experiment_id=experiment_id,
        trial_id=trial.id,
        attempt=trial.attempt,
        sequence_id=trial.sequence_id,
        parameter_id=trial.parameter_id,
        parameter_source=_SOURCE_NAMES[trial.source],
        spec=spec,
        log_sequence=log_sequence,
    )
    task.parameters.MergeFromString(trial.parameters)
    if trial.checkpoint is not None and trial.checkpoint.sha256:
        write_trial_checkpoint(task.resume_from, trial.checkpoint)
    if trial.provenance:
        task.provenance.MergeFromString(trial.provenance)
    return task


def stop_to_bytes(experiment_id: str, stop: SendStop, log_sequence: int) -> bytes:
    """Encode the order to an agent to stop a trial, with the reason."""
    order = task_pb2.RunnerControl(
        stop_trial=task_pb2.StopTrial(
            experiment_id=experiment_id,
            trial_id=stop.trial_id,
            attempt=stop.attempt,
            reason=stop_text(stop.stop),
        ),
        log_sequence=log_sequence,
    )
    write_stop(order.stop_trial.stop, stop.stop)
    return order.SerializeToString()


def drop_to_bytes(experiment_id: str, drop: SendDrop, log_sequence: int) -> bytes:
    """Encode the order to an agent to end one attempt (by its claim) without a report."""
    return task_pb2.RunnerControl(
        drop_trial=task_pb2.DropTrial(
            experiment_id=experiment_id,
            trial_id=drop.trial_id,
            attempt=drop.attempt,
            claim_id=drop.claim_id,
        ),
        log_sequence=log_sequence,
    ).SerializeToString()


def forget_to_bytes(experiment_id: str, log_sequence: int) -> bytes:
    """Encode the order to an agent to forget an ended experiment and attempts of it."""
    return task_pb2.RunnerControl(
        forget_experiment=task_pb2.ForgetExperiment(experiment_id=experiment_id),
        log_sequence=log_sequence,
    ).SerializeToString()


def drain_to_bytes() -> bytes:
    """Encode the order to an agent to pull no more tasks and to end after its last trial."""
    return task_pb2.RunnerControl(drain_runner=task_pb2.DrainRunner()).SerializeToString()
