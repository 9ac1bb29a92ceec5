"""Distributions as installed here."""

from importlib.metadata import distribution

import pytest

from svc_trial_runner.fleet.adapters.bundles.installed import (
    AGENT,
    NeededDistribution,
    can_be_copied,
    fingerprint,
    installed_files,
    needed_distributions,
)
from svc_trial_runner.fleet.domain.distributions import WorkerTarget
from svc_trial_runner.fleet.ports import PlatformError

TARGET = WorkerTarget((3, 11), "manylinux_2_36_x86_64")
OTHER_MACHINE = WorkerTarget((3, 11), "manylinux_2_36_aarch64")


def needed(name: str) -> NeededDistribution:
    installed = distribution(name)
    return NeededDistribution(name, installed.version, installed=installed)


def test_agent_needs_its_own_distributions_and_what_they_require() -> None:
    names = {one.name for one in needed_distributions(TARGET)}

    assert {"nni", "nni-proto", "nni-svc-common", AGENT} < names
    assert {"grpcio", "nats-py", "protobuf", "structlog"} < names


def test_agent_needs_nothing_that_only_clients_use() -> None:
    names = {one.name for one in needed_distributions(TARGET)}

    assert not names & {"pydantic", "rich", "typer", "numpy", "torch", "asyncssh", "minio"}


def test_distribution_that_is_not_installed_is_listed_with_its_rule() -> None:
    (missing,) = needed_distributions(TARGET, "no-such-distribution")

    assert (missing.version, missing.installed) == ("", None)
    assert missing.requirement == "no-such-distribution"


def test_own_distribution_runs_everywhere() -> None:
    assert needed("nni").is_own
    assert can_be_copied(needed("nni"), OTHER_MACHINE, TARGET)


def test_compiled_distribution_runs_on_its_machine_only() -> None:
    assert not needed("grpcio").is_own
    assert not can_be_copied(needed("grpcio"), OTHER_MACHINE, TARGET)
    assert can_be_copied(needed("structlog"), OTHER_MACHINE, TARGET)


def test_distribution_that_is_not_installed_cannot_be_copied() -> None:
    assert not can_be_copied(NeededDistribution("nni-proto", ""), TARGET, TARGET)


def test_files_of_own_packages_are_the_package_without_caches_and_tests() -> None:
    names = [name for name, _ in installed_files(needed(AGENT))]

    assert "svc_trial_runner/__main__.py" in names
    assert "svc_trial_runner/fleet/adapters/bundles/worker.py" in names
    assert any(name.endswith(".dist-info/METADATA") for name in names)
    assert not any("__pycache__" in name or "__editable__" in name for name in names)
    assert not any(name.startswith(("tests/", "build/")) for name in names)
    assert not any(name.endswith(("direct_url.json", ".pyc", "RECORD")) for name in names)


def test_files_of_a_distribution_have_no_commands_and_keep_licences() -> None:
    names = [name for name, _ in installed_files(needed("structlog"))]

    assert "structlog/__init__.py" in names
    assert any("LICENSE" in name for name in names)
    assert not any(".." in name for name in names)


def test_distribution_without_files_is_named_with_a_remedy() -> None:
    with pytest.raises(PlatformError, match="the distribution nni-proto cannot") as caught:
        list(installed_files(NeededDistribution("nni-proto", "4.0")))

    assert "pip install --force-reinstall --no-deps nni-proto==4.0" in caught.value.remedy
    assert caught.value.permanent


def test_fingerprint_stays_while_nothing_changes() -> None:
    assert fingerprint(needed("structlog")) == fingerprint(needed("structlog"))
    assert fingerprint(needed("nni-svc-common")) == fingerprint(needed("nni-svc-common"))
    assert fingerprint(needed("structlog")) != fingerprint(needed("nats-py"))


@pytest.mark.parametrize(
    ("name", "is_own"), [("nni", True), ("nni-proto", True), ("nnix", False), ("my-nni", False)]
)
def test_own_distributions_are_those_of_nni(name: str, *, is_own: bool) -> None:
    assert NeededDistribution(name, "4.0").is_own is is_own


def test_requirement_is_the_installed_version_or_the_rule() -> None:
    assert NeededDistribution("a", "1.0", ">=1").requirement == "a==1.0"
    assert NeededDistribution("a", "", ">=1").requirement == "a>=1"
    assert fingerprint(NeededDistribution("a", "", ">=1")) == "a>=1"
