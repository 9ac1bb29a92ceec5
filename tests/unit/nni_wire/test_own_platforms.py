from pathlib import Path

import pytest

from nni_wire.own_platforms import (
    GROUP,
    PlatformEntry,
    load_own_platform,
    load_reference,
    own_platform_names,
    registered_platforms,
)

MODULE = """\
from nni_wire.own_platforms import PlatformEntry

entry = PlatformEntry("queues:Config", "queues:Adapter", isolated=True)
"""


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package that adds platforms, some of which are broken."""
    info = tmp_path / "queues-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: queues\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[{GROUP}]\nqueue = queues_of_a_test:entry\nbroken = queues_missing:entry\n"
        "misspelled = queues_of_a_test:enrty\n"
    )
    (tmp_path / "queues_of_a_test.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))


def test_names_are_those_of_the_entry_points() -> None:
    assert {"queue", "broken"} <= set(own_platform_names())


def test_entry_is_loaded_by_its_name() -> None:
    assert load_own_platform("queue") == PlatformEntry(
        "queues:Config", "queues:Adapter", isolated=True
    )


def test_platform_that_no_package_adds_is_none() -> None:
    assert load_own_platform("nowhere") is None


def test_module_that_is_missing_is_an_import_error() -> None:
    with pytest.raises(ImportError, match="queues_missing"):
        load_own_platform("broken")


def test_object_that_the_module_lacks_is_an_import_error() -> None:
    with pytest.raises(ImportError, match="queues_of_a_test:enrty"):
        load_own_platform("misspelled")


def test_reference_is_an_object_of_a_module() -> None:
    assert load_reference("pathlib:Path") is Path


def test_reference_to_nothing_is_an_import_error() -> None:
    with pytest.raises(ImportError, match="pathlib has no Nothing"):
        load_reference("pathlib:Nothing")


def test_entry_with_a_service_runs_in_a_child_process() -> None:
    entry = PlatformEntry("queues:Config", service="queues:Service")

    assert entry.runs_in_child_process
    assert not PlatformEntry("queues:Config", "queues:Adapter").runs_in_child_process


@pytest.mark.parametrize(("adapter", "service"), [("", ""), ("a:A", "s:S")])
def test_entry_has_an_adapter_or_a_service(adapter: str, service: str) -> None:
    with pytest.raises(ValueError, match="adapter or service must be given, and not both"):
        PlatformEntry("queues:Config", adapter, service=service)


def test_user_without_a_home_has_no_registrations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "~no-such-user-of-a-test")

    assert registered_platforms() == {}
