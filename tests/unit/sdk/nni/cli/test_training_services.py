"""`nnictl trainingservice`: registrations of platforms of other packages."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nni.cli.training_services import app

MODULE = """\
from nni.experiment.config import TrainingServiceConfig
from nni_wire.own_platforms import PlatformEntry

class Config(TrainingServiceConfig):
    platform: str = "listed-queue"

entry = PlatformEntry(f"{__name__}:Config", "queues:Adapter")
"""


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a module with a platform, and a user without registrations."""
    (tmp_path / "listed_queue_of_a_test.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def run(*words: str) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.output
    return done.stdout


def names() -> list[str]:
    return [row["Name"] for row in json.loads(run("list", "--json"))]


def test_registered_platform_is_listed_until_it_is_unregistered() -> None:
    run("register", "--package", "listed_queue_of_a_test")

    rows = json.loads(run("list", "--json"))
    assert {
        "Name": "listed-queue",
        "Source": "registered",
        "Entry": "listed_queue_of_a_test:entry",
    } in rows
    run("unregister", "listed-queue")
    assert "listed-queue" not in names()


def test_unknown_name_is_an_error() -> None:
    done = CliRunner().invoke(app, ["unregister", "nowhere"])

    assert "got 'nowhere'" in str(done.exception)
