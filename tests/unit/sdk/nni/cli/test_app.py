import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nni.cli.app import app
from nni.version import __version__


def test_version_is_printed_before_a_command_is_asked_for() -> None:
    done = CliRunner().invoke(app, ["--version"])

    assert (done.exit_code, done.output) == (0, f"{__version__}\n")


def test_no_command_shows_the_help() -> None:
    done = CliRunner().invoke(app, [])

    assert "Start, watch, change and stop experiments." in done.output


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_lists_every_group(flag: str) -> None:
    done = CliRunner().invoke(app, [flag])

    groups = ("create", "stop", "update", "trial", "experiment", "log", "runner", "doctor")
    assert [word for word in groups if word not in done.output] == []


def test_services_of_another_machine_are_named_by_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NNI_ENDPOINT", "NNI_TOKEN_FILE", "NNI_CA_FILE"):
        monkeypatch.setenv(name, "")  # restored at the end of the test

    CliRunner().invoke(
        app,
        ["--endpoint", "https://nni.lab", "--token-file", str(tmp_path / "token"), "algo", "list"],
    )

    assert os.environ["NNI_ENDPOINT"] == "https://nni.lab"
    assert os.environ["NNI_TOKEN_FILE"] == str(tmp_path / "token")
