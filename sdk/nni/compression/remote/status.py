"""Status of a compression job: a fold of the events of its experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, cast

from nni.compression.job.description import JobDescription
from nni.compression.job.field_checks import JobError
from nni.compression.job.steps import Step, all_steps
from nni_proto.common.v1 import metric_pb2
from nni_proto.experiment.v1 import experiment_pb2
from nni_proto.trial.v1 import trial_pb2
from nni_wire.values import from_value

if TYPE_CHECKING:
    from nni_proto.experiment.v1 import event_pb2

_TRIAL_PREFIX: Final = "TRIAL_STATE_"
_EXPERIMENT_PREFIX: Final = "EXPERIMENT_STATE_"
SUCCEEDED: Final = "SUCCEEDED"


@dataclass(frozen=True, slots=True)
class StepStatus:
    """Status of one step of a job: kind, state, trial, result and checkpoint.

    Args:
        number: number of the step, from 1.
        kind: `prune`, `speedup`, `fine_tune`, `quantize` or `export`.
        state: state of its last trial; `PENDING` before there is one.
        trial_id: its last trial; empty before there is one.
        result: `default` (the metric), `sparsity`, `parameters`, `flops`, `error` and latencies,
            as in `nni.compression.job.StepResult`; empty until the step has succeeded.
        checkpoint: SHA-256 of the archive of its files in the byte store; empty until then.
        checkpoint_bytes: size of the archive.

    Examples:
        >>> StepStatus(1, "prune").state
        'PENDING'
    """

    number: int
    kind: str
    state: str = "PENDING"
    trial_id: str = ""
    result: Mapping[str, object] = field(default_factory=dict)
    checkpoint: str = ""
    checkpoint_bytes: int = 0


@dataclass(frozen=True, slots=True)
class JobStatus:
    """Status of a compression job: description, state, message, and status of each step.

    Args:
        id: id of the experiment.
        name: name of the experiment.
        state: state of the experiment: `INITIALIZED`, `RUNNING`, `DONE`, `ERROR`, `STOPPED`, ...
        job: description of the job.
        steps: all steps of the job, in order.
        message: why the job failed or was stopped; empty if there is nothing to say.

    Examples:
        >>> JobStatus("abc", "", "RUNNING", {}, (StepStatus(1, "prune"),)).done
        0
    """

    id: str
    name: str
    state: str
    job: Mapping[str, object]
    steps: tuple[StepStatus, ...]
    message: str = ""

    @property
    def algorithm(self) -> str:
        """Name of the pruner; empty if the description has none."""
        algorithm = self.job.get("algorithm")
        return str(algorithm.get("name", "")) if isinstance(algorithm, Mapping) else ""

    @property
    def done(self) -> int:
        """Number of steps that have succeeded."""
        return sum(step.state == SUCCEEDED for step in self.steps)

    @property
    def complete(self) -> bool:
        """Whether all steps have succeeded."""
        return self.done == len(self.steps)


class StatusFold:
    """Fold of the events of a job's experiment into its status."""

    def __init__(self) -> None:
        self._id = self._name = self._message = ""
        self._state = "INITIALIZED"
        self._job: Mapping[str, object] = {}
        self._steps: dict[int, StepStatus] = {}
        self._step_of_trial: dict[str, int] = {}
        self._is_job = False

    def feed(self, event: event_pb2.Event) -> None:
        """Apply the next event; ignore those that change neither job nor steps."""
        match event.WhichOneof("kind"):
            case "experiment_created":
                self._created(event.experiment_created)
            case "experiment_state_changed":
                self._changed(event.experiment_state_changed)
            case "trial_scheduled":
                self._scheduled(event.trial_scheduled)
            case "trial_started":
                self._set(event.trial_started.trial_id, state="RUNNING")
            case "metric_reported":
                self._reported(event.metric_reported)
            case "trial_ended":
                self._ended(event.trial_ended)
            case _:
                pass

    @property
    def status(self) -> JobStatus | None:
        """Status after the events so far; None: the experiment is no compression job."""
        if not self._is_job:
            return None
        steps = tuple(self._steps[number] for number in sorted(self._steps))
        return JobStatus(self._id, self._name, self._state, self._job, steps, self._message)

    def _created(self, event: event_pb2.ExperimentCreated) -> None:
        config = event.config
        self._is_job = config.HasField("compression")
        self._id, self._name = event.experiment_id, config.experiment_name
        job = from_value(config.compression.job)
        self._job = cast("Mapping[str, object]", job) if isinstance(job, dict) else {}
        self._steps = {step.number: StepStatus(step.number, step.kind) for step in _steps(job)}

    def _changed(self, event: event_pb2.ExperimentStateChanged) -> None:
        name = experiment_pb2.ExperimentState.Name(event.new_state)
        self._state = name.removeprefix(_EXPERIMENT_PREFIX)
        self._message = event.cause.detail

    def _scheduled(self, event: event_pb2.TrialScheduled) -> None:
        parameters = from_value(event.parameters)
        number = parameters.get("step") if isinstance(parameters, dict) else None
        if isinstance(number, int) and number in self._steps:
            self._step_of_trial[event.trial_id] = number
            fresh = StepStatus(number, self._steps[number].kind)
            self._steps[number] = replace(fresh, state="WAITING", trial_id=event.trial_id)

    def _reported(self, event: event_pb2.MetricReported) -> None:
        result = from_value(event.metric.value)
        if event.metric.type == metric_pb2.METRIC_TYPE_FINAL and isinstance(result, dict):
            self._set(event.trial_id, result=result)

    def _ended(self, event: event_pb2.TrialEnded) -> None:
        state = trial_pb2.TrialState.Name(event.state).removeprefix(_TRIAL_PREFIX)
        archive = event.checkpoint.archive
        self._set(
            event.trial_id,
            state=state,
            checkpoint=archive.sha256,
            checkpoint_bytes=archive.size_bytes,
        )

    def _set(self, trial_id: str, **fields: object) -> None:
        number = self._step_of_trial.get(trial_id)
        if number is not None:
            self._steps[number] = replace(self._steps[number], **fields)  # type: ignore[arg-type] # fields of a step


def _steps(job: object) -> list[Step]:
    try:
        return all_steps(JobDescription.of(job))
    except JobError:
        return []  # the compressor refuses it, and says why
