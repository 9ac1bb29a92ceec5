"""Handlers of trials, their metrics and explanations."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any, Final

from starlette.responses import Response

from nni_proto.common.v1 import metric_pb2
from nni_proto.trial.v1 import trial_pb2, trial_service_pb2
from svc_common.errors import InvalidArgumentError, NotFoundError
from svc_common.large_work import off_loop
from svc_manager.pagination import Page
from svc_manager.usecases.trials import TrialFilter
from svc_manager.web.handlers.listings import Fetch, all_items, listing, streamed_list
from svc_manager.web.records import trials as records
from svc_manager.web.records.scalars import value_from
from svc_manager.web.records.schemas import TRIAL_STATES
from svc_manager.web.route import Call, json_response

IDS_LIMIT: Final = 500
"""Maximum number of trials that one request names."""
ORDERS: Final = {
    "sequence": trial_service_pb2.TRIAL_ORDER_SEQUENCE,
    "metric": trial_service_pb2.TRIAL_ORDER_METRIC,
    "start_time": trial_service_pb2.TRIAL_ORDER_START_TIME,
    "duration": trial_service_pb2.TRIAL_ORDER_DURATION,
    "state": trial_service_pb2.TRIAL_ORDER_STATE,
}
METRIC_TYPES: Final = {
    "PERIODICAL": metric_pb2.METRIC_TYPE_PERIODICAL,
    "FINAL": metric_pb2.METRIC_TYPE_FINAL,
}


async def list_trials(call: Call) -> Response:
    """Respond with the trials by ids, or by state and other filters, whole or as one page."""
    if "ids" in call.query:
        return json_response(await _named_trials(call, call.query["ids"]))
    chosen = TrialFilter(
        states=_states(call.query.get("status", "")),
        id_prefix=call.query.get("id_prefix", ""),
        with_result=call.query.get("with_result", False),
        order=ORDERS[call.query.get("order", "sequence")],
        descending=call.query.get("descending", False),
    )
    return await listing(call, _fetch_trials(call, chosen), records.trial)


async def get_trial(call: Call) -> Response:
    """Respond with the JSON record of the trial that the path names; 404 if it is unknown."""
    trial = await call.dependencies.trials.get(call.experiment_id, call.path["trial_id"])
    return json_response(records.trial(trial))


async def add_trial(call: Call) -> Response:
    """Queue a trial with the parameters in the body; respond with its parameter id."""
    given = _parsed(call.body)
    if isinstance(given, dict) and set(given) <= {"parameters", "parameter_id"} and given:
        given = _parsed(given.get("parameters"))
    if not isinstance(given, dict):
        raise InvalidArgumentError(
            "body", "must be an object with the parameters", type(given).__name__
        )
    parameter_id = await call.dependencies.trials.add(
        call.experiment_id,
        await off_loop(call.body_bytes, value_from, given, "parameters"),
        call.request_id,
    )
    return json_response({"parameterId": str(parameter_id)}, status=201)


async def kill_trial(call: Call) -> Response:
    """Request the stop of a live trial as USER_CANCELED; respond with its record."""
    trial = await call.dependencies.trials.kill(
        call.experiment_id, call.path["trial_id"], call.request_id
    )
    return json_response(records.trial(trial))


async def explain_trial(call: Call) -> Response:
    """Respond with why a trial waits, runs, succeeded, was stopped or failed: summary, reasons."""
    found = await call.dependencies.trials.explain(call.experiment_id, call.path["trial_id"])
    return json_response(records.explanation(found))


async def explain_next(call: Call) -> Response:
    """Respond with the explanation why the next trial was not created yet."""
    found = await call.dependencies.trials.explain(call.experiment_id)
    return json_response(records.explanation(found))


async def metric_data(call: Call) -> Response:
    """Respond with the metrics of all trials, by type if set: whole list, or one page."""
    return await listing(call, _fetch_metrics(call, ""), records.trial_metric, 1_000)


async def trial_metric_data(call: Call) -> Response:
    """Respond with the metrics of one trial, by type if set: whole list, or one page."""
    trial = await call.dependencies.trials.get(call.experiment_id, call.path["trial_id"])
    return await listing(call, _fetch_metrics(call, trial.id), records.trial_metric, 1_000)


async def latest_metric_data(call: Call) -> Response:
    """Respond with the final and the latest intermediate result of each trial."""
    return await streamed_list(_latest(call))


async def intermediate_ranges(call: Call) -> Response:
    """Respond with the smallest and largest intermediate number of each metric, by trial."""
    found = await call.dependencies.trials.intermediate_ranges(call.experiment_id)

    async def items() -> AsyncGenerator[dict[str, Any], None]:
        for trial_id, ranges in found.items():
            yield {"trialJobId": trial_id, "ranges": dict(ranges)}

    return await streamed_list(items())


async def metric_data_range(call: Call) -> Response:
    """Respond with all metrics of the trials whose sequence ids are from `first` to `last`."""
    return await streamed_list(
        _between(call, _sequence_id(call, "first"), _sequence_id(call, "last"))
    )


async def _latest(call: Call) -> AsyncGenerator[dict[str, Any], None]:
    async for trial in _all_trials(call):
        if trial.HasField("last_intermediate"):
            yield records.metric(trial.id, trial.parameter_id, trial.last_intermediate)
        if trial.HasField("final_metric"):
            yield records.metric(trial.id, trial.parameter_id, trial.final_metric)


async def _between(call: Call, first: int, last: int) -> AsyncGenerator[dict[str, Any], None]:
    async for trial in _all_trials(call):
        if trial.sequence_id > last:
            break
        if trial.sequence_id >= first:
            async for metric in all_items(_fetch_metrics(call, trial.id)):
                yield records.trial_metric(metric)


def _all_trials(call: Call) -> AsyncGenerator[trial_pb2.Trial, None]:
    return all_items(_fetch_trials(call, TrialFilter()))


def _fetch_trials(call: Call, chosen: TrialFilter) -> Fetch[trial_pb2.Trial]:
    async def fetch(size: int, token: str) -> Page[trial_pb2.Trial]:
        return await call.dependencies.trials.list(
            call.experiment_id, chosen, page_size=size, page_token=token
        )

    return fetch


def _fetch_metrics(call: Call, trial_id: str) -> Fetch[trial_service_pb2.TrialMetric]:
    kind = METRIC_TYPES.get(call.query.get("type", ""), metric_pb2.METRIC_TYPE_UNSPECIFIED)

    async def fetch(size: int, token: str) -> Page[trial_service_pb2.TrialMetric]:
        return await call.dependencies.trials.metrics(
            call.experiment_id, trial_id, kind, page_size=size, page_token=token
        )

    return fetch


async def _named_trials(call: Call, ids: str) -> list[dict[str, Any]]:
    """Return records of trials by comma-separated ids; skip unknown ones; raise if too many."""
    wanted = [name for name in ids.split(",") if name]
    if len(wanted) > IDS_LIMIT:
        raise InvalidArgumentError("ids", f"must name at most {IDS_LIMIT} trials", len(wanted))
    found = []
    for trial_id in wanted:
        try:
            trial = await call.dependencies.trials.get(call.experiment_id, trial_id)
        except NotFoundError as error:
            if error.kind != "trial":
                raise
        else:
            found.append(records.trial(trial))
    return found


def _states(text: str) -> tuple[trial_pb2.TrialState.ValueType, ...]:
    names = [name for name in text.upper().split(",") if name]
    for name in names:
        if name not in TRIAL_STATES:
            rule = "must be one or more of " + ", ".join(TRIAL_STATES)
            raise InvalidArgumentError("status", rule, name[:80])
    return tuple(trial_pb2.TrialState.Value(f"TRIAL_STATE_{name}") for name in names)


def _sequence_id(call: Call, name: str) -> int:
    text = call.path[name]
    if not (text.isascii() and text.isdigit() and len(text) < 16):  # noqa: PLR2004 - exact in JavaScript
        raise InvalidArgumentError(name, "must be a sequence id, an integer >= 0", text[:80])
    return int(text)


def _parsed(given: object) -> object:
    if isinstance(given, str):
        try:
            return json.loads(given)
        except (ValueError, RecursionError):
            raise InvalidArgumentError("body", "must be an object, or JSON text of one") from None
    return given
