from pathlib import Path
from typing import Annotated, Any, get_args

import pytest
import typer
from typer.testing import CliRunner

from nni.cli import options

SPELLINGS = {
    "Json": ("--json",),
    "Port": ("--port", "-p"),
    "Debug": ("--debug", "-d"),
    "Foreground": ("--foreground", "-f"),
    "UrlPrefix": ("--url_prefix", "--url-prefix", "-u"),
    "ExperimentDir": ("--experiment_dir", "--experiment-dir", "-e"),
    "TrialId": ("--trial_id", "--trial-id", "-T"),
    "OptionalTrialId": ("--trial_id", "--trial-id", "-T"),
    "Filename": ("--filename", "-f"),
}


def declared(name: str) -> Any:
    return get_args(getattr(options, name))[1]


@pytest.mark.parametrize("name", SPELLINGS)
def test_option_has_its_documented_spellings(name: str) -> None:
    option = declared(name)

    assert (option.default, *option.param_decls) == SPELLINGS[name]


def run(annotation: Any, *words: str) -> tuple[int, list[object]]:
    app, got = typer.Typer(), []

    @app.command()
    def command(value: annotation) -> None:
        got.append(value)

    return CliRunner().invoke(app, words).exit_code, got


@pytest.mark.parametrize(("port", "code"), [("1", 0), ("65535", 0), ("0", 2), ("65536", 2)])
def test_port_has_a_range(port: str, code: int) -> None:
    assert run(options.Port, "--port", port)[0] == code


def test_file_is_a_path() -> None:
    assert run(options.Filename, "-f", "space.json") == (0, [Path("space.json")])


def test_id_is_an_argument_that_may_be_left_out() -> None:
    def command(id: options.OptionalId = None) -> None:  # noqa: A002 - the documented name
        typer.echo(repr(id))

    app = typer.Typer()
    app.command()(command)

    assert CliRunner().invoke(app, []).output == "None\n"
    assert CliRunner().invoke(app, ["abcd"]).output == "'abcd'\n"


def test_required_id_is_required() -> None:
    assert run(options.RequiredId) == (2, [])
    assert run(Annotated[str, declared("RequiredId")], "abcd") == (0, ["abcd"])
