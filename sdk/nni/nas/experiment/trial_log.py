"""Log of an experiment, as events of the models that its trials evaluate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nni.experiment.records import state_name
from nni.nas.execution.trial_platform import (
    CandidateAdded,
    CandidateEnded,
    CandidateLost,
    CandidateMetric,
    CandidateScheduled,
    PlatformClosed,
    PlatformEvent,
    PlatformLimits,
    PlatformOpened,
)
from nni_proto.common.v1 import metric_pb2, value_pb2
from nni_proto.experiment.v1 import event_pb2, experiment_pb2
from nni_proto.trial.v1 import trial_pb2
from nni_wire.values import from_value

_NO_MORE: Final = frozenset({experiment_pb2.EXPERIMENT_STATE_NO_MORE_TRIAL})
_TAKING: Final = frozenset({experiment_pb2.EXPERIMENT_STATE_RUNNING})
_OVER: Final = frozenset(
    {
        experiment_pb2.EXPERIMENT_STATE_DONE,
        experiment_pb2.EXPERIMENT_STATE_ERROR,
        experiment_pb2.EXPERIMENT_STATE_STOPPED,
    }
)


class TrialLog:
    """Translator of one experiment's events, read in order from the first, for a search.

    Trials that were not added by a search, with a key, are left out.

    Attributes:
        keys: keys by parameter id.
    """

    def __init__(self) -> None:
        self.keys: dict[int, str] = {}
        self._trial_keys: dict[str, str] = {}

    def read(self, message: event_pb2.Event) -> PlatformEvent | None:
        """Convert an event of the experiment to one of the search; None if it has no use for it."""
        match message.WhichOneof("kind"):
            case "custom_trial_added":
                added = message.custom_trial_added
                self.keys[added.parameter_id] = added.request_id
                return CandidateAdded(added.request_id, parameters_in(added.parameters))
            case "trial_scheduled":
                return self._scheduled(message.trial_scheduled)
            case "trial_lost":
                key = self._trial_keys.get(message.trial_lost.trial_id)
                return None if key is None else CandidateLost(key)
            case "metric_reported":
                return self._metric(message.metric_reported)
            case "trial_ended":
                return self._ended(message.trial_ended)
            case "budget_changed":
                return _limits(message.budget_changed)
            case "experiment_state_changed":
                return _state_event(message.experiment_state_changed.new_state)
        return None

    def _scheduled(self, message: event_pb2.TrialScheduled) -> PlatformEvent | None:
        key = self.keys.get(message.parameter_id)
        if key is None:
            return None
        self._trial_keys[message.trial_id] = key
        return CandidateScheduled(key, message.trial_id)

    def _metric(self, message: event_pb2.MetricReported) -> PlatformEvent | None:
        key = self._trial_keys.get(message.trial_id)
        if key is None:
            return None
        is_final = message.metric.type == metric_pb2.METRIC_TYPE_FINAL
        return CandidateMetric(key, from_value(message.metric.value), is_final)

    def _ended(self, message: event_pb2.TrialEnded) -> PlatformEvent | None:
        key = self._trial_keys.get(message.trial_id)
        if key is None:
            return None
        return CandidateEnded(key, message.state == trial_pb2.TRIAL_STATE_SUCCEEDED)


def parameters_in(value: value_pb2.Value) -> Mapping[str, Any]:
    """Return a trial's parameters as a dict; {} if the value is no map."""
    found = from_value(value)
    return found if isinstance(found, dict) else {}


def _limits(message: event_pb2.BudgetChanged) -> PlatformLimits:
    number = message.max_trial_number if message.HasField("max_trial_number") else None
    concurrency = message.trial_concurrency if message.HasField("trial_concurrency") else None
    return PlatformLimits(number, concurrency)


def _state_event(
    state: experiment_pb2.ExperimentState.ValueType,
) -> PlatformClosed | PlatformOpened | None:
    if state in _OVER | _NO_MORE:
        return PlatformClosed(state_name(state), state in _OVER)
    return PlatformOpened() if state in _TAKING else None
