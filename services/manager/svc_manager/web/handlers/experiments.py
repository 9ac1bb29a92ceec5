"""Handlers of experiments: create, read, update, stop, resume, delete, import and export."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Final

from starlette.responses import Response

from nni_proto.experiment.v1 import experiment_pb2, experiment_service_pb2
from svc_common.errors import InvalidArgumentError, NotFoundError
from svc_common.large_work import off_loop
from svc_manager.actors.leasing import OwnedElsewhereError
from svc_manager.pagination import Page
from svc_manager.usecases.experiments import (
    ActivatedExperiment,
    ConfigChange,
    NewExperiment,
    ReopenRequest,
)
from svc_manager.web.handlers.listings import all_items, listing
from svc_manager.web.records import experiments as records
from svc_manager.web.records.agent_limits import agent_limits_from_json
from svc_manager.web.records.config import config_from_json, tuner_from_json
from svc_manager.web.records.encoding import from_json
from svc_manager.web.records.scalars import parse_duration, to_seconds, value_from
from svc_manager.web.route import Call, json_response


async def version(call: Call) -> Response:
    """Respond with NNI's version, experiment id, gRPC address and agents' incompatible versions."""
    return json_response(
        {
            "version": call.dependencies.version,
            "experimentId": call.experiment_id,
            "grpc": call.dependencies.grpc_address,
            "otherVersions": dict(call.dependencies.other_versions()),
        }
    )


async def session(call: Call) -> Response:
    """Respond with whether the caller may change experiments."""
    return json_response({"canChange": call.can_change})


async def check_status(call: Call) -> Response:
    """Respond with the experiment's state, its errors, and the reason for waiting."""
    return json_response(records.status(await _experiment(call)))


async def get_profile(call: Call) -> Response:
    """Respond with the experiment's profile: configuration, state, times and best result."""
    return await _profile(await _experiment(call))


async def create(call: Call) -> Response:
    """Create an experiment from the body, a configuration in schema v2; respond with its id."""
    new = NewExperiment(
        config=await off_loop(call.body_bytes, config_from_json, call.body),
        request_id=call.request_id,
        port=call.query.get("port", 0),
        url_prefix=call.query.get("url_prefix", ""),
        # Variables of the services stay here: a trial holds no credential of them.
        environment={
            name: text
            for name, text in call.dependencies.environment.items()
            if not name.startswith("NNI_")
        },
    )
    return _created(await call.dependencies.experiments.create(new), status=201)


def _created(opened: ActivatedExperiment, status: int) -> Response:
    """Return a JSON response with an opened experiment's id, page addresses and warnings."""
    return json_response(
        {
            "experiment_id": opened.experiment.id,
            "urls": opened.urls,
            "warnings": opened.warnings,
        },
        status=status,
    )


async def stop(call: Call) -> Response:
    """Stop the experiment, wait until it is STOPPED; respond with its state."""
    experiment = await call.dependencies.experiments.stop(call.experiment_id, call.request_id)
    return json_response(records.status(experiment))


async def resume(call: Call) -> Response:
    """Resume the stopped experiment; respond with its id and addresses."""
    port = _option(call.body, "port", 0)
    if isinstance(port, bool) or not isinstance(port, int):
        raise InvalidArgumentError("port", "must be a port, or absent for none", port)
    reopening = ReopenRequest(call.experiment_id, call.request_id, port)
    return _created(await call.dependencies.experiments.resume(reopening), status=200)


async def delete(call: Call) -> Response:
    """Delete the stopped experiment; respond with the number of folders still being deleted."""
    remaining = await call.dependencies.experiments.delete(call.experiment_id, call.request_id)
    return json_response({"remainingFolders": remaining})


async def run_again(call: Call) -> Response:
    """Create a new experiment with the configuration of this one; respond with its id."""
    new_seed = _option(call.body, "newSeed", default=False)
    if not isinstance(new_seed, bool):
        raise InvalidArgumentError("newSeed", "must be true or false", new_seed)
    opened = await call.dependencies.experiments.run_again(
        call.experiment_id, call.request_id, new_seed=new_seed
    )
    return _created(opened, status=201)


def _option(body: object, name: str, default: object) -> object:
    """Return a field of a body, ``default`` if absent; raise unless the body is an object."""
    if not isinstance(body, dict):
        raise InvalidArgumentError("body", "must be an object", type(body).__name__)
    return body.get(name, default)


async def update(call: Call) -> Response:
    """Change the section of the configuration named by `update_type`; respond with the profile."""
    kind = call.query.get("update_type")
    if kind is None:
        raise InvalidArgumentError("update_type", "must be one of " + ", ".join(UPDATES))
    if not isinstance(call.body, dict):
        raise InvalidArgumentError("body", "must be an object", type(call.body).__name__)
    params = call.body.get("params", call.body)
    if not isinstance(params, dict):
        raise InvalidArgumentError("params", "must be an object", type(params).__name__)
    change = await off_loop(call.body_bytes, UPDATES[kind], params)
    experiment = await call.dependencies.experiments.update(
        call.experiment_id, change, call.request_id
    )
    return await _profile(experiment)


async def _profile(experiment: experiment_pb2.Experiment) -> Response:
    """Return the JSON response of an experiment's profile; a large one is built in a thread."""
    size_bytes = experiment.ByteSize()

    def write() -> Response:
        return json_response(records.profile(experiment), size_bytes=size_bytes)

    return await off_loop(size_bytes, write)


async def import_data(call: Call) -> Response:
    """Import the body's samples into the algorithm; respond with warnings on broken constraints."""
    warnings = await call.dependencies.experiments.import_data(
        call.experiment_id,
        await off_loop(call.body_bytes, value_from, call.body, "body"),
        call.request_id,
    )
    return json_response({"warnings": list(warnings)})


async def export_data(call: Call) -> Response:
    """Respond with the trials that have a result: parameters, value, on request intermediates."""
    intermediate = bool(call.query.get("intermediate", False))

    async def fetch(size: int, token: str) -> Page[experiment_service_pb2.ExportedTrial]:
        return await call.dependencies.experiments.export(
            call.experiment_id,
            include_intermediates=intermediate,
            page_size=size,
            page_token=token,
        )

    return await listing(
        call, fetch, lambda item: records.exported(item, intermediate=intermediate)
    )


async def experiments_info(call: Call) -> Response:
    """Respond with the list of all experiments, newest first; `all=false` omits stopped ones."""

    async def fetch(size: int, token: str) -> Page[experiment_pb2.Experiment]:
        return await call.dependencies.experiments.list(
            include_stopped=call.query.get("all", True), page_size=size, page_token=token
        )

    found: list[dict[str, Any]] = []
    async for experiment in all_items(fetch):
        try:
            urls = await _urls(call, experiment.id) if experiment.port else []
        except NotFoundError:
            continue  # it was deleted after the list was made
        found.append(records.metadata(experiment, urls, os.getpid()))
    return json_response(found)


async def _urls(call: Call, experiment_id: str) -> list[str]:
    """Return the addresses of an experiment's page; empty if another manager owns it."""
    try:
        return (await call.dependencies.experiments.get(experiment_id)).urls
    except OwnedElsewhereError:
        return []


async def experiment_metadata(call: Call) -> Response:
    """Respond with this experiment's entry of the list: id, name, state, port, times, addresses."""
    opened = await call.dependencies.experiments.get(call.experiment_id)
    return json_response(records.metadata(opened.experiment, opened.urls, os.getpid()))


async def job_statistics(call: Call) -> Response:
    """Respond with the number of trials by state."""
    return json_response(dict(await call.dependencies.trials.counts(call.experiment_id)))


async def _experiment(call: Call) -> experiment_pb2.Experiment:
    return (await call.dependencies.experiments.get(call.experiment_id)).experiment


def _count(params: Mapping[str, Any], *names: str) -> int:
    """Return the first of the named fields; raise InvalidArgumentError unless an integer >= 1."""
    name, value = _field(params, *names)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**31:
        raise InvalidArgumentError(name, "must be an integer >= 1", value)
    return value


def _field(params: Mapping[str, Any], *names: str) -> tuple[str, Any]:
    """Return name and value of the first of ``names`` in ``params``; raise if there is none."""
    for name in names:
        if name in params:
            return name, params[name]
    raise InvalidArgumentError(names[0], "must be given in params")


def _new_concurrency(params: Mapping[str, Any]) -> ConfigChange:
    return ConfigChange(trial_concurrency=_count(params, "trialConcurrency"))


def _new_trial_number(params: Mapping[str, Any]) -> ConfigChange:
    return ConfigChange(max_trial_number=_count(params, "maxTrialNumber", "maxTrialNum"))


def _new_duration(params: Mapping[str, Any]) -> ConfigChange:
    name, value = _field(params, "maxExperimentDuration", "maxExecDuration")
    return ConfigChange(max_experiment_duration_s=to_seconds(parse_duration(value, name)))


def _new_search_space(params: Mapping[str, Any]) -> ConfigChange:
    name, value = _field(params, "searchSpace")
    if isinstance(value, str):  # NNI's clients send it as JSON text
        value = from_json(value.encode("utf-8", "surrogatepass"))
    return ConfigChange(search_space=value_from(value, name))


def _new_tuner(params: Mapping[str, Any]) -> ConfigChange:
    return ConfigChange(tuner=tuner_from_json(_field(params, "tuner")[1]))


def _new_agent_limits(params: Mapping[str, Any]) -> ConfigChange:
    return ConfigChange(agent_limits=agent_limits_from_json(params))


UPDATES: Final[Mapping[str, Callable[[Mapping[str, Any]], ConfigChange]]] = {
    "TRIAL_CONCURRENCY": _new_concurrency,
    "MAX_EXEC_DURATION": _new_duration,
    "SEARCH_SPACE": _new_search_space,
    "MAX_TRIAL_NUM": _new_trial_number,
    "TUNER": _new_tuner,
    "AGENT_LIMITS": _new_agent_limits,
}
"""Parser of the changed value, by `update_type`."""
