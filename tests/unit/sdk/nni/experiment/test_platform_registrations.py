import importlib
import sys
from pathlib import Path

import pytest

from nni.experiment import ExperimentConfig
from nni.experiment.errors import ExperimentError
from nni.experiment.platform_registrations import register_platform, unregister_platform
from nni_wire.own_platforms import (
    PlatformEntry,
    load_own_platform,
    own_platform_names,
    registered_platforms,
)

MODULE = """\
from nni.experiment.config import TrainingServiceConfig
from nni_wire.own_platforms import PlatformEntry
from nni_wire.training_services import TrainingService

class QueueConfig(TrainingServiceConfig):
    platform: str = "registered-queue"
    queue: str

class LocalConfig(TrainingServiceConfig):
    platform: str = "local"

class Nameless(TrainingServiceConfig):
    pass

class Service(TrainingService):
    pass

entry = PlatformEntry(f"{__name__}:QueueConfig", service=f"{__name__}:Service")
taken = PlatformEntry(f"{__name__}:LocalConfig", "queues:Adapter")
class Red(TrainingServiceConfig):
    platform: str = "red\\x1b[31m"

red = PlatformEntry(f"{__name__}:Red", "queues:Adapter")
nameless = PlatformEntry(f"{__name__}:Nameless", "queues:Adapter")
classless = PlatformEntry(f"{__name__}:entry", "queues:Adapter")
serviceless = PlatformEntry(f"{__name__}:QueueConfig", service=f"{__name__}:QueueConfig")
"""
PACKAGE = "registered_queue_of_a_test"


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a module with platforms, and a user without registrations."""
    (tmp_path / f"{PACKAGE}.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def test_registered_platform_is_one_of_configurations_until_it_is_unregistered() -> None:
    section = {"platform": "registered-queue", "queue": "long"}

    names = {register_platform(PACKAGE), register_platform(f"{PACKAGE}:entry")}

    assert names == {"registered-queue"}
    assert names <= set(own_platform_names())
    assert load_own_platform("registered-queue") == PlatformEntry(
        f"{PACKAGE}:QueueConfig", service=f"{PACKAGE}:Service"
    )
    config = ExperimentConfig(training_service=section)
    assert config.to_dict()["trainingService"] == section
    unregister_platform("registered-queue")
    assert registered_platforms() == {}


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("missing_of_a_test", "--package missing_of_a_test cannot be imported"),
        (f"{PACKAGE}:nothing", "has no nothing"),
        (f"{PACKAGE}:QueueConfig", "must be a PlatformEntry"),
        (f"{PACKAGE}:taken", "must have a name that is not taken, got 'local'"),
        (f"{PACKAGE}:nameless", "must have the platform's name as its default"),
        (f"{PACKAGE}:red", "in printable characters, got 'red\\x1b[31m'"),
        ("../../x", "--package ../../x cannot be imported"),
        (":entry", "--package :entry cannot be imported"),
        (f"{PACKAGE}:classless", "must be a TrainingServiceConfig"),
        (f"{PACKAGE}:serviceless", "must be a TrainingService, got"),
    ],
)
def test_package_that_is_wrong_is_refused(reference: str, message: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        register_platform(reference)

    assert message in str(caught.value)
    assert registered_platforms() == {}


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        ("import sys; sys.exit(0)", "SystemExit: 0"),
        ("raise RuntimeError('theirs')", "RuntimeError: theirs"),
        ("def (", "SyntaxError"),
        ("def __getattr__(name): raise OSError('theirs')", "OSError: theirs"),
    ],
)
def test_package_that_raises_at_import_is_refused_with_the_cause(
    tmp_path: Path, content: str, cause: str
) -> None:
    (tmp_path / "raises_at_import.py").write_text(content)
    importlib.invalidate_caches()

    with pytest.raises(ExperimentError, match=f"--package raises_at_import .*{cause}"):
        register_platform("raises_at_import")
    sys.modules.pop("raises_at_import", None)  # later tests look at each module

    assert registered_platforms() == {}


def test_name_that_is_not_registered_is_an_error_with_the_registered_ones() -> None:
    register_platform(PACKAGE)

    with pytest.raises(ExperimentError, match=r"\(registered-queue\), got 'nowhere'"):
        unregister_platform("nowhere")


def test_damaged_registry_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    register_platform(PACKAGE)
    (file,) = (tmp_path / "config" / "nni").glob("platforms-*.json")
    file.write_text("{")

    with pytest.raises(ExperimentError, match=r"platforms-.*json cannot be read"):
        register_platform(PACKAGE)
    with pytest.raises(ImportError, match="repair or delete it"):
        load_own_platform("registered-queue")
    assert "registered-queue" not in own_platform_names()
