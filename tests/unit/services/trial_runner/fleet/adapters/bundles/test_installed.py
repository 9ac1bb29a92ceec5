"""Distributions as installed here."""

import os
from importlib.metadata import distribution
from pathlib import Path

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
from tests.support.worker_shell import write_distribution

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


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of installed distributions, which is on the path."""
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return tmp_path / "site"


def editable(site: Path, name: str) -> NeededDistribution:
    """Install a distribution as editable: its package is a folder beside the list of files."""
    module = name.replace("-", "_")
    write_distribution(site, name)
    (site / f"{module}.py").unlink()
    facts = site / f"{module}-1.0.dist-info"
    (facts / "RECORD").write_text(f"__editable__.{name}.pth,,\n{facts.name}/METADATA,,\n")
    (facts / "direct_url.json").write_text('{"dir_info": {"editable": true}}')
    (facts / "top_level.txt").write_text(f"{module}\n")
    for file in (
        *("__init__.py", "b.py", "a.py", "typed.pyi", "old.pyc", ".hidden", "data/words.txt"),
        *("tests/test_a.py", "__pycache__/a.txt", "node_modules/a.js", "b/inner/c.py"),
    ):
        path = site / module / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return needed(name)


def test_requirements_are_followed_with_their_extras_and_only_once(site: Path) -> None:
    write_distribution(site, "root-one", ["middle-one[fast]", "middle-one"])
    write_distribution(
        site,
        "middle-one",
        ['quick-one>=2; extra == "fast"', 'slow-one; extra == "slow"', "root-one"],
    )

    found = needed_distributions(TARGET, "root-one")

    assert [one.requirement for one in found] == [
        "middle-one==1.0", "quick-one>=2", "root-one==1.0"
    ]  # fmt: skip


def test_requirement_by_an_address_is_passed_over(site: Path) -> None:
    write_distribution(site, "root-two", ["far-one @ https://example.org/far.whl", "near-one"])

    assert [one.name for one in needed_distributions(TARGET, "root-two")] == [
        "near-one", "root-two"
    ]  # fmt: skip


def test_editable_package_has_its_own_files_alone(site: Path) -> None:
    files = dict(installed_files(editable(site, "edited-one")))

    assert list(files) == [
        "edited_one-1.0.dist-info/METADATA",
        "edited_one/__init__.py",
        "edited_one/a.py",
        "edited_one/b.py",
        "edited_one/b/inner/c.py",
        "edited_one/data/words.txt",
    ]
    assert files["edited_one/b/inner/c.py"] == site / "edited_one/b/inner/c.py"


def test_fingerprint_of_an_editable_package_changes_with_each_of_its_files(site: Path) -> None:
    found = editable(site, "edited-two")
    module = site / "edited_two" / "b" / "inner" / "c.py"
    os.utime(module, ns=(1000, 1000))
    before = fingerprint(found)

    os.utime(module, ns=(2000, 2000))
    later = fingerprint(found)
    module.write_text("x = 1")
    os.utime(module, ns=(2000, 2000))

    assert len({before, later, fingerprint(found)}) == 3


def test_editable_package_that_is_gone_is_named(site: Path) -> None:
    found = editable(site, "edited-three")
    (site / "edited_three-1.0.dist-info" / "top_level.txt").write_text("no_such_package\n")

    with pytest.raises(PlatformError, match="its package no_such_package cannot be found"):
        list(installed_files(found))


def test_distribution_without_a_list_of_files_cannot_be_copied(site: Path) -> None:
    for name in ("plain-one", "nni-plain"):
        write_distribution(site, name)
        (site / f"{name.replace('-', '_')}-1.0.dist-info" / "RECORD").unlink()

        assert not can_be_copied(needed(name), TARGET, TARGET)
        with pytest.raises(PlatformError, match="it has no list of its files"):
            list(installed_files(needed(name)))


def test_distribution_without_tags_cannot_be_copied(site: Path) -> None:
    write_distribution(site, "plain-two")
    assert can_be_copied(needed("plain-two"), TARGET, TARGET)
    (site / "plain_two-1.0.dist-info" / "WHEEL").unlink()

    assert not can_be_copied(needed("plain-two"), TARGET, TARGET)


def test_one_fitting_tag_of_several_is_enough(site: Path) -> None:
    write_distribution(site, "plain-three", tag="cp311-cp311-win_amd64\nTag: py3-none-any")

    assert can_be_copied(needed("plain-three"), TARGET, TARGET)


def test_files_outside_the_packages_are_left_out(site: Path) -> None:
    write_distribution(site, "plain-four")
    record = site / "plain_four-1.0.dist-info" / "RECORD"
    record.write_text(f"{record.read_text()}/etc/passwd,,\n../../bin/plain,,\n\n.hidden.py,,\n")

    assert [name for name, _ in installed_files(needed("plain-four"))] == [
        "plain_four.py",
        "plain_four-1.0.dist-info/METADATA",
        "plain_four-1.0.dist-info/WHEEL",
    ]


def test_fingerprint_changes_with_the_list_of_files(site: Path) -> None:
    write_distribution(site, "plain-five")
    before = fingerprint(needed("plain-five"))
    record = site / "plain_five-1.0.dist-info" / "RECORD"
    record.write_text(f"{record.read_text()}more.py,,\n")

    assert fingerprint(needed("plain-five")) != before
