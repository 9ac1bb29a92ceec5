"""The route table: declarations that fit their handlers and their documentation."""

from __future__ import annotations

import re

import pytest

from nni_wire.limits import SEARCH_SPACE_LIMIT_BYTES
from svc_common.access.permissions import CHANGES, READS
from svc_manager.web.handlers import experiments, trials
from svc_manager.web.listeners.openapi import document
from svc_manager.web.listeners.route_table import ROUTES
from svc_manager.web.records.schemas import COMPONENTS
from svc_manager.web.route import Route, Scope

BY_KEY = {(route.method, route.path): route for route in ROUTES}


def each(route: Route) -> str:
    return f"{route.method} {route.path}"


def test_each_handler_serves_one_route_so_that_operation_ids_are_unique() -> None:
    names = [route.handler.__name__ for route in ROUTES]

    assert len(names) == len(set(names)) == len(BY_KEY)


@pytest.mark.parametrize("route", ROUTES, ids=each)
def test_only_changing_routes_read_a_body(route: Route) -> None:
    assert route.rule == (READS if route.method == "GET" else CHANGES)
    assert (route.body is not None) == (route.method in {"POST", "PUT"})


@pytest.mark.parametrize("route", ROUTES, ids=each)
def test_names_of_query_parameters_are_unique_and_none_is_a_path_parameter(route: Route) -> None:
    names = [parameter.name for parameter in route.query]

    assert len(names) == len(set(names))
    assert set(names).isdisjoint(re.findall(r"{(\w+)}", route.path))


@pytest.mark.parametrize("route", ROUTES, ids=each)
def test_summaries_are_one_phrase(route: Route) -> None:
    assert route.summary[0].isupper()
    assert not route.summary.endswith(".")


def test_routes_of_the_installation_are_those_that_need_no_experiment() -> None:
    found = {each(route) for route in ROUTES if route.scope is Scope.INSTALLATION}

    assert found == {
        "GET /version",
        "GET /session",
        "GET /experiments-info",
        "GET /runners",
        "GET /pools",
        "POST /experiment",
    }


def test_bodies_with_a_search_space_fit_the_largest_one() -> None:
    for key in (("POST", "/experiment"), ("PUT", "/experiment")):
        assert BY_KEY[key].body_limit_bytes > SEARCH_SPACE_LIMIT_BYTES


def test_choices_of_parameters_are_those_of_the_handlers() -> None:
    [update_type] = BY_KEY["PUT", "/experiment"].query
    order = next(one for one in BY_KEY["GET", "/trial-jobs"].query if one.name == "order")

    assert update_type.choices == tuple(experiments.UPDATES)
    assert order.choices == tuple(trials.ORDERS)


def test_every_reference_of_the_document_has_a_component() -> None:
    text = repr(document(ROUTES, "1"))
    named = set(re.findall(r"#/components/schemas/(\w+)", text))

    assert named <= COMPONENTS.keys()
    assert set(COMPONENTS) <= named | {"Error"}, "a component that no route uses"
