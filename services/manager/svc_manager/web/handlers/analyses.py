"""Handlers of analyses: hyperparameter importance and Pareto front."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from nni_proto.common.v1 import metric_pb2
from nni_proto.trial.v1 import trial_pb2
from svc_common.errors import InvalidArgumentError, UnavailableError
from svc_manager.web.dependencies import AnalysisUseCases
from svc_manager.web.records.scalars import value_of
from svc_manager.web.route import Call, json_response

_MODES: Final = {
    "minimize": metric_pb2.OPTIMIZE_MODE_MINIMIZE,
    "maximize": metric_pb2.OPTIMIZE_MODE_MAXIMIZE,
}


async def importance(call: Call) -> Response:
    """Respond with the share of a metric's variance that each hyperparameter explains."""
    result = await _analyses(call).importance(call.experiment_id, call.query.get("metric", ""))
    return json_response(
        {
            "metric": result.objective.metric,
            "trials": result.found.outcomes,
            "parameters": [
                {"name": item.name, "share": item.share} for item in result.found.parameters
            ],
            "interactions": result.found.interactions,
        }
    )


async def pareto(call: Call) -> Response:
    """Respond with the Pareto front: the trials that no other trial dominates."""
    objectives = _objectives(call.query.get("objectives", ""))
    result = await _analyses(call).front(call.experiment_id, objectives)
    names = [objective.metric for objective in result.objectives]
    return json_response(
        {
            "objectives": [
                {"metric": objective.metric, "mode": _mode_name(objective)}
                for objective in result.objectives
            ],
            "front": [_front_record(trial, names) for trial in result.trials],
            "trials": result.finished,
            "infeasible": result.infeasible,
            "incomplete": result.incomplete,
        }
    )


def _analyses(call: Call) -> AnalysisUseCases:
    if call.dependencies.analyses is None:
        raise UnavailableError("analyses need a dispatcher, and this manager has none")
    return call.dependencies.analyses


def _objectives(text: str) -> list[metric_pb2.Objective]:
    """Parse objectives from `metric:mode,metric:mode`; raise InvalidArgumentError if malformed.

    Raises:
        InvalidArgumentError: the text has another form.
    """
    found = []
    for part in filter(None, text.split(",")):
        metric, _, mode = part.rpartition(":")
        if not metric or mode not in _MODES:
            raise InvalidArgumentError(
                "objectives", "must be like accuracy:maximize,latency:minimize", part[:80]
            )
        found.append(metric_pb2.Objective(metric=metric, mode=_MODES[mode]))
    return found


def _mode_name(objective: metric_pb2.Objective) -> str:
    maximized = objective.mode == metric_pb2.OPTIMIZE_MODE_MAXIMIZE
    return "maximize" if maximized else "minimize"


def _front_record(trial: trial_pb2.Trial, metrics: list[str]) -> dict[str, object]:
    value = value_of(trial.final_metric.value)
    return {
        "trialJobId": trial.id,
        "sequenceId": trial.sequence_id,
        "values": {name: value.get(name) if isinstance(value, dict) else value for name in metrics},
        "parameters": value_of(trial.parameters),
    }
