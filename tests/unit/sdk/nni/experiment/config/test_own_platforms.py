from pathlib import Path

import pytest

from nni.experiment import ExperimentConfig
from nni.experiment.config.own_platforms import own_platform_class
from nni.experiment.errors import ConfigError

MODULE = """\
from nni.experiment.config import TrainingServiceConfig
from nni_wire.own_platforms import PlatformEntry

class QueueConfig(TrainingServiceConfig):
    platform: str = "queue-of-a-test"
    queue: str

entry = PlatformEntry(f"{__name__}:QueueConfig", "queues:Adapter")
without_class = PlatformEntry(f"{__name__}:entry", "queues:Adapter")
missing = PlatformEntry(f"{__name__}:Nothing", "queues:Adapter")
"""


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package with a platform, and with platforms that are broken."""
    info = tmp_path / "queues-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: queues\nVersion: 1.0\n")
    module = "queue_configs_of_a_test"
    (info / "entry_points.txt").write_text(
        f"[nni.platforms]\nqueue-of-a-test = {module}:entry\nother = {module}:entry\n"
        f"classless = {module}:without_class\nmissing = {module}:missing\n"
        "adapter-only = pathlib:Path\nbroken = queues_missing:entry\n"
    )
    (tmp_path / f"{module}.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))


def test_fields_of_the_class_are_those_of_the_section() -> None:
    config = ExperimentConfig(training_service={"platform": "queue-of-a-test", "queue": "long"})

    assert config.to_dict()["trainingService"] == {"platform": "queue-of-a-test", "queue": "long"}


def test_field_that_the_class_lacks_is_refused() -> None:
    with pytest.raises(ConfigError, match="quue"):
        ExperimentConfig(training_service={"platform": "queue-of-a-test", "quue": "long"})


def test_platform_that_no_package_adds_has_no_class() -> None:
    assert own_platform_class("nowhere") is None


@pytest.mark.parametrize(
    ("platform", "message"),
    [
        ("other", "default of the field platform"),
        ("classless", "PlatformEntry whose config is a TrainingServiceConfig"),
        ("adapter-only", "PlatformEntry whose config is a TrainingServiceConfig"),
        ("missing", "has no Nothing"),
        ("broken", "queues_missing"),
    ],
)
def test_broken_package_is_named_with_what_is_wrong(platform: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        own_platform_class(platform)
