"""Records of experiments and trials, under the documented names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from google.protobuf import timestamp_pb2

from nni_proto.common.v1 import metric_pb2
from nni_proto.experiment.v1 import experiment_pb2, experiment_service_pb2
from nni_proto.trial.v1 import trial_pb2, trial_service_pb2
from nni_wire.values import from_value

_MILLISECONDS = 1000
_NANOSECONDS_PER_MILLISECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class TrialHyperParameters:
    """Parameters of a trial, with their number and source.

    Examples:
        >>> from nni.experiment import TrialHyperParameters
        >>> one = TrialHyperParameters(0, {"x": 0.5}, parameter_source="customized")
        >>> one.parameters["x"]
        0.5
    """

    parameter_id: int
    """Number of the parameters in the experiment, from 0."""
    parameters: Any
    """Values by hyperparameter, or what else the tuner made."""
    parameter_source: str
    """`algorithm` or `customized`."""
    parameter_index: int = 0
    """Number of the parameters in the trial; above 0 in multi-phase experiments only."""


@dataclass(frozen=True, slots=True)
class TrialMetricData:
    """Metric that a trial reported: time, trial, type, sequence, value.

    Examples:
        >>> from nni.experiment import TrialMetricData
        >>> reports = [TrialMetricData(0, "aBcDe", "0", "PERIODICAL", n, 0.1 * n) for n in range(3)]
        >>> max(report.data for report in reports)
        0.2
    """

    timestamp: int
    """Milliseconds since 1970."""
    trialJobId: str  # noqa: N815 - documented name
    """Id of the trial."""
    parameterId: str  # noqa: N815 - documented name
    """Number of the trial's parameters, as text."""
    type: str
    """`PERIODICAL` or `FINAL`."""
    sequence: int
    """0-based, per trial and type."""
    data: Any
    """Reported value."""


@dataclass(frozen=True, slots=True)
class TrialResult:
    """Parameters and final result of one trial, with its id.

    Examples:
        >>> from nni.experiment import TrialResult
        >>> results = [TrialResult({"x": 0.5}, 0.9, "aBcDe"), TrialResult({"x": 0.7}, 0.8, "fGhIj")]
        >>> max(results, key=lambda result: result.value).parameter
        {'x': 0.5}
    """

    parameter: Any
    """Values by hyperparameter, or what else the tuner made."""
    value: Any
    """Final result that the trial reported."""
    trialJobId: str  # noqa: N815 - documented name
    """Id of the trial."""


@dataclass(frozen=True, slots=True)
class TrialJob:
    """State, parameters, times and result of one trial.

    Examples:
        >>> from nni.experiment import TrialJob
        >>> def duration_s(trial: TrialJob) -> float | None:
        ...     if trial.startTime is None or trial.endTime is None:
        ...         return None
        ...     return (trial.endTime - trial.startTime) / 1000
        >>> duration_s(TrialJob("aBcDe", "SUCCEEDED", [], "/log", 1000, 3500, [], "/log/stderr", 0))
        2.5
    """

    trialJobId: str  # noqa: N815 - documented name
    """Id of the trial."""
    status: str
    """State, e.g. `RUNNING` or `SUCCEEDED`."""
    hyperParameters: list[TrialHyperParameters]  # noqa: N815 - documented name
    """Parameters of the trial; one set."""
    logPath: str  # noqa: N815 - documented name
    """Folder with stdout, stderr and trial.log."""
    startTime: int | None  # noqa: N815 - documented name
    """Milliseconds since 1970; `None` if it has not started."""
    endTime: int | None  # noqa: N815 - documented name
    """Milliseconds since 1970; `None` if it has not ended."""
    finalMetricData: list[TrialMetricData]  # noqa: N815 - documented name
    """Empty, or the one final result."""
    stderrPath: str  # noqa: N815 - documented name
    """File with its standard error; empty until it has a folder."""
    sequenceId: int  # noqa: N815 - documented name
    """Position in the order of submission, from 0."""
    tuner: str = ""
    """Name or label of the tuner that proposed it; empty if a user added it."""


def milliseconds(time: timestamp_pb2.Timestamp) -> int:
    """Return an instant as milliseconds since 1970, rounded down."""
    return time.seconds * _MILLISECONDS + time.nanos // _NANOSECONDS_PER_MILLISECOND


def state_name(state: experiment_pb2.ExperimentState.ValueType) -> str:
    """Return the documented name of an experiment's state, e.g. `RUNNING`."""
    return experiment_pb2.ExperimentState.Name(state).removeprefix("EXPERIMENT_STATE_")


def trial_state_name(state: trial_pb2.TrialState.ValueType) -> str:
    """Return the documented name of a trial's state, e.g. `SUCCEEDED`."""
    return trial_pb2.TrialState.Name(state).removeprefix("TRIAL_STATE_")


def metric_data(trial_id: str, parameter_id: int, metric: metric_pb2.Metric) -> TrialMetricData:
    """Decode a metric message to a `TrialMetricData`: value unchanged, time in ms since 1970."""
    return TrialMetricData(
        timestamp=milliseconds(metric.reported_at),
        trialJobId=trial_id,
        parameterId=str(parameter_id),
        type=metric_pb2.MetricType.Name(metric.type).removeprefix("METRIC_TYPE_"),
        sequence=metric.sequence,
        data=from_value(metric.value),
    )


def metric_record(message: trial_service_pb2.TrialMetric) -> TrialMetricData:
    """Decode a listed metric message to a `TrialMetricData`, as `metric_data` does."""
    return metric_data(message.trial_id, message.parameter_id, message.metric)


def trial_result(message: experiment_service_pb2.ExportedTrial) -> TrialResult:
    """Decode an exported trial's protobuf message to a `TrialResult`, its value unchanged.

    A value that is a dict keeps all its keys, not `default` alone.
    """
    return TrialResult(
        parameter=from_value(message.parameters),
        value=from_value(message.value),
        trialJobId=message.trial_id,
    )


def trial_job(trial: trial_pb2.Trial) -> TrialJob:
    """Decode a trial's protobuf message to a `TrialJob`, its times in ms since 1970."""
    customized = trial.source == trial_pb2.PARAMETER_SOURCE_CUSTOMIZED
    final = []
    if trial.HasField("final_metric"):
        final.append(metric_data(trial.id, trial.parameter_id, trial.final_metric))
    return TrialJob(
        trialJobId=trial.id,
        status=trial_state_name(trial.state),
        hyperParameters=[
            TrialHyperParameters(
                parameter_id=trial.parameter_id,
                parameters=from_value(trial.parameters),
                parameter_source="customized" if customized else "algorithm",
            )
        ],
        logPath=trial.directory,
        startTime=milliseconds(trial.started_at) if trial.HasField("started_at") else None,
        endTime=milliseconds(trial.ended_at) if trial.HasField("ended_at") else None,
        finalMetricData=final,
        stderrPath=f"{trial.directory}/stderr" if trial.directory else "",
        sequenceId=trial.sequence_id,
        tuner=proposer_of(trial),
    )


def proposer_of(trial: trial_pb2.Trial) -> str:
    """Return the label, or else the name, of the tuner that proposed a trial; empty: unknown.

    A tuner has a label where several share the trials. Unknown: a user added the trial, or its log
    is of a version without provenance.
    """
    origin = from_value(trial.provenance) if trial.HasField("provenance") else None
    if not isinstance(origin, dict):
        return ""
    return str(origin.get("tuner") or origin.get("algorithm") or "")


def trial_counts(experiment: experiment_pb2.Experiment) -> dict[str, int]:
    """Return the number of trials by the documented name of their state, zeros left out."""
    return {
        name.removeprefix("TRIAL_STATE_"): count
        for name, count in experiment.trial_counts.items()
        if count
    }


def experiment_metadata(experiment: experiment_pb2.Experiment) -> dict[str, Any]:
    """Return an experiment's entry in a list of experiments as a dict; times in ms, or `N/A`."""
    config = experiment.config
    platforms = [service.platform for service in config.training_services]
    started = experiment.started_at if experiment.HasField("started_at") else experiment.created_at
    return {
        "id": experiment.id,
        "name": config.experiment_name or "N/A",
        "status": state_name(experiment.state),
        "port": experiment.port or "N/A",
        "platform": "callers" if config.HasField("callers") else ",".join(platforms),
        "startTime": milliseconds(started) if started.seconds else "N/A",
        "endTime": milliseconds(experiment.ended_at) if experiment.HasField("ended_at") else "N/A",
        "logDir": experiment.directory,
        "prefixUrl": experiment.url_prefix or None,
        "tag": dict(config.tags),
    }
