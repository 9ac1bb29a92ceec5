"""Every RPC has a row in the table of permissions, every REST route a rule, and no row is stale."""

import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.descriptor import MethodDescriptor

from svc_common.access.permissions import (
    CHANGES,
    READS,
    RENEWS,
    RULE_BY_METHOD,
    SERVED_BY_OTHERS,
    rule_of_method,
)
from svc_common.access.roles import Role
from svc_manager.web.handlers.events import follow_events
from svc_manager.web.listeners.route_table import ROUTES
from svc_manager.web.route import Route

PROTOS = Path(__file__).parents[2] / "proto" / "nni_proto"
READING_NAMES = ("Get", "List", "Describe", "Follow", "Wait", "Count", "Export", "Explain")
RENEWING_NAME = "Renew"
REMEDY = "give it a row in svc_common/access/permissions.py"


def methods() -> Iterator[MethodDescriptor]:
    """Yield every RPC of `proto/` that the services serve."""
    for path in sorted(PROTOS.rglob("*.proto")):
        name = ".".join(path.relative_to(PROTOS.parent).with_suffix("").parts)
        descriptor = importlib.import_module(f"{name}_pb2").DESCRIPTOR
        for service in descriptor.services_by_name.values():
            if service.full_name not in SERVED_BY_OTHERS:
                yield from service.methods


UNDECLARED = Route("GET", "/new", follow_events, "A route without a rule", {})
METHODS = {f"/{one.containing_service.full_name}/{one.name}": one for one in methods()}


def test_every_rpc_has_a_row() -> None:
    missing = set(METHODS) - set(RULE_BY_METHOD)

    assert sorted(missing) == [], REMEDY


def test_every_route_has_a_rule() -> None:
    missing = [(route.method, route.path) for route in ROUTES if route.rule is UNDECLARED.rule]

    assert sorted(missing) == [], "give it a rule in svc_manager/web/listeners/route_table.py"


def test_no_row_is_stale_and_no_route_stands_twice() -> None:
    routes = [(route.method, route.path) for route in ROUTES]
    rpcs = {method for method in RULE_BY_METHOD if not method.startswith("/grpc.")}

    assert sorted(routes) == sorted(set(routes)), "one route would hide the other"
    assert sorted(rpcs - set(METHODS)) == []


def test_rpc_or_route_without_a_rule_is_for_administrators() -> None:
    assert rule_of_method("/nni_proto.new.v1.Service/Method").role is Role.ADMIN
    assert UNDECLARED.rule.role is Role.ADMIN


@pytest.mark.parametrize("method", METHODS)
def test_who_may_only_look_gets_at_nothing_that_changes(method: str) -> None:
    rule = rule_of_method(method)
    takes_request_id = "request_id" in METHODS[method].input_type.fields_by_name

    if METHODS[method].name.startswith(READING_NAMES):
        assert not takes_request_id
    if takes_request_id:
        assert rule.role >= Role.USER
        assert rule.audited or METHODS[method].name.startswith(RENEWING_NAME)


def test_only_renewals_leave_no_line() -> None:
    renewing = [method for method, rule in RULE_BY_METHOD.items() if rule is RENEWS]

    assert [METHODS[method].name for method in renewing] == ["RenewLeases"]


@pytest.mark.parametrize("route", ROUTES, ids=lambda one: f"{one.method} {one.path}")
def test_routes_that_change_are_for_users_and_leave_a_line(route: Route) -> None:
    rule = route.rule

    if route.method == "GET":
        assert rule == READS
    else:
        assert rule.role >= CHANGES.role
        assert rule.audited
