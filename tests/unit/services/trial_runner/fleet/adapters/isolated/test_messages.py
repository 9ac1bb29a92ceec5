import json
from pathlib import Path
from typing import TypeVar

import pytest

from svc_trial_runner.fleet.adapters.front.no_front import NoFront
from svc_trial_runner.fleet.adapters.isolated.messages import (
    read_agents,
    read_context,
    read_endpoint,
    read_failures,
    read_leftovers,
    read_names,
    read_orders,
    read_problems,
    write_agents,
    write_context,
    write_endpoint,
    write_failures,
    write_leftovers,
    write_names,
    write_orders,
    write_problems,
)
from svc_trial_runner.fleet.domain.agents import (
    AgentCredentials,
    AgentName,
    AgentOrder,
    AgentPhase,
    LaunchFailure,
    PlatformAgent,
    PlatformProblem,
    PlatformSection,
)
from svc_trial_runner.fleet.domain.leftovers import Leftover
from svc_trial_runner.fleet.ports import (
    AdapterContext,
    FrontEndpoint,
    InstallationEndpoints,
    PlatformError,
)
from tests.support.local_platforms import NoBundles

T = TypeVar("T")
NAME = AgentName("0123abcd", "exp-a", 7)


def through_json(value: T) -> T:
    found: T = json.loads(json.dumps(value))
    return found


def test_orders_survive() -> None:
    orders = [
        AgentOrder(NAME, AgentCredentials("user", "password", "token"), 2, 1, 4),
        AgentOrder(NAME, AgentCredentials("u", "p", "t"), 1),
    ]

    assert read_orders(through_json(write_orders(orders))) == orders


@pytest.mark.parametrize("phase", AgentPhase)
def test_agents_survive_in_each_phase(phase: AgentPhase) -> None:
    agents = [PlatformAgent(NAME, phase, "node-1", "because")]

    assert read_agents(through_json(write_agents(agents))) == agents


def test_failures_survive() -> None:
    failures = [LaunchFailure(NAME, "no quota", "ask", permanent=True)]

    assert read_failures(through_json(write_failures(failures))) == failures


def test_problems_survive() -> None:
    problems = [PlatformProblem("image", "must exist", "a:1", "push it", permanent=False)]

    assert read_problems(through_json(write_problems(problems))) == problems


def test_names_survive() -> None:
    assert read_names(through_json(write_names([NAME]))) == [NAME]


def test_text_that_is_no_name_is_an_error() -> None:
    with pytest.raises(PlatformError, match="'other-job' is no name"):
        read_names(["other-job"])


def test_endpoint_survives() -> None:
    endpoint = FrontEndpoint("10.0.0.1:8081", "-----BEGIN CERTIFICATE-----")

    assert read_endpoint(through_json(write_endpoint(endpoint))) == endpoint


def test_context_survives_with_its_secrets(tmp_path: Path) -> None:
    bundles, front = NoBundles(), NoFront()
    section = PlatformSection("ray", {"numCpus": 2}, {"password": "hidden"})
    endpoints = InstallationEndpoints("nats://127.0.0.1:1", "127.0.0.1:2")
    context = AdapterContext("0123abcd", "exp-a", section, endpoints, bundles, tmp_path, front)

    assert read_context(through_json(write_context(context)), bundles, front) == context


def test_leftovers_survive_the_way() -> None:
    found = [Leftover("gpus", ("nni-0123abcd-gpus-1",), "slurm"), Leftover("desks")]

    assert read_leftovers(through_json(write_leftovers(found))) == found


def test_long_text_is_shown_by_its_first_80_characters() -> None:
    with pytest.raises(PlatformError, match=f"^'{'a' * 80}' is no name"):
        read_names(["a" * 100])
