"""What can be learnt from results, over REST."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from nni_proto.common.v1 import metric_pb2
from nni_proto.trial.v1 import trial_pb2
from svc_common.errors import InvalidArgumentError, UnavailableError
from svc_manager.web.dependencies import AnalysisUseCases
from svc_manager.web.records.scalars import value_of
from svc_manager.web.route import Call, json_answer

_MODES: Final = {
    "minimize": metric_pb2.OPTIMIZE_MODE_MINIMIZE,
    "maximize": metric_pb2.OPTIMIZE_MODE_MAXIMIZE,
}


async def importance(call: Call) -> Response:
    """Tell how much of a metric's variance each hyperparameter explains."""
    told = await _analyses(call).importance(call.experiment_id, call.query.get("metric", ""))
    return json_answer(
        {
            "metric": told.objective.metric,
            "trials": told.found.outcomes,
            "parameters": [
                {"name": item.name, "share": item.share} for item in told.found.parameters
            ],
            "interactions": told.found.interactions,
        }
    )


async def pareto(call: Call) -> Response:
    """Tell which trials no other one beats in every objective."""
    wanted = _objectives(call.query.get("objectives", ""))
    told = await _analyses(call).front(call.experiment_id, wanted)
    names = [objective.metric for objective in told.objectives]
    return json_answer(
        {
            "objectives": [
                {"metric": objective.metric, "mode": _mode_name(objective)}
                for objective in told.objectives
            ],
            "front": [_point(trial, names) for trial in told.trials],
            "trials": told.finished,
            "infeasible": told.infeasible,
            "incomplete": told.incomplete,
        }
    )


def _analyses(call: Call) -> AnalysisUseCases:
    if call.installation.analyses is None:
        raise UnavailableError("this manager has no dispatcher that could compute it")
    return call.installation.analyses


def _objectives(text: str) -> list[metric_pb2.Objective]:
    """Return the objectives of `metric:mode,metric:mode`.

    Raises:
        InvalidArgumentError: the text is no such list.
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


def _point(trial: trial_pb2.Trial, metrics: list[str]) -> dict[str, object]:
    value = value_of(trial.final_metric.value)
    return {
        "trialJobId": trial.id,
        "sequenceId": trial.sequence_id,
        "values": {name: value.get(name) if isinstance(value, dict) else value for name in metrics},
        "parameters": value_of(trial.parameters),
    }
