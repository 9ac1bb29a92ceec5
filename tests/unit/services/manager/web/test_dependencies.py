"""Dependencies of the web handlers: defaults and secrets."""

from __future__ import annotations

from svc_manager.web.dependencies import WebDependencies
from tests.unit.services.manager.web.in_memory import (
    InMemoryExperiments,
    InMemoryManager,
    InMemoryTrials,
)


def minimal(**changes: object) -> WebDependencies:
    manager = InMemoryManager()
    return WebDependencies(
        InMemoryExperiments(manager),
        InMemoryTrials(manager),
        "1",
        "127.0.0.1:1",
        **changes,  # type: ignore[arg-type] # fields of a test
    )


def test_optional_dependencies_are_absent_by_default() -> None:
    made = minimal()

    assert (made.analyses, made.instruments, made.forwarder) == (None, None, None)
    assert (made.environment, made.other_versions()) == ({}, {})


def test_each_instance_has_its_own_tensorboards() -> None:
    assert minimal().tensorboards is not minimal().tensorboards


def test_environment_of_users_is_in_no_repr() -> None:
    assert "hush-hush" not in repr(minimal(environment={"API_KEY": "hush-hush"}))
