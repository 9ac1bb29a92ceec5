"""Handlers of machines: the agents that run trials, and the pools that they belong to."""

from __future__ import annotations

from starlette.responses import Response

from nni_proto.experiment.v1 import experiment_service_pb2
from svc_manager.pagination import Page
from svc_manager.web.handlers.listings import listing
from svc_manager.web.records import machines as records
from svc_manager.web.route import Call, json_response


async def list_runners(call: Call) -> Response:
    """Respond with the connected agents, and those that platforms run or have been ordered."""
    agents = call.dependencies.agents

    async def fetch(size: int, token: str) -> Page[experiment_service_pb2.RunnerSummary]:
        return await agents.list(page_size=size, page_token=token)

    return await listing(call, fetch, records.runner)


async def list_pools(call: Call) -> Response:
    """Respond with the pools of the fleet: their agents by state, and why one does not grow."""
    return json_response([records.pool(state) for state in call.dependencies.agents.pool_states()])
