import typer.main

from docs.generator.command_line import command_line_page, commands
from nni.cli.app import app

ROOT = typer.main.get_command(app).make_context("nnictl", [], resilient_parsing=True)


def test_page_has_a_section_for_every_command() -> None:
    page = command_line_page()

    names = [context.command_path for context in commands(ROOT)]
    assert {"nnictl create", "nnictl update trialnum"} <= set(names)
    assert [name for name in names if f"\n## {name}\n" not in page] == []


def test_every_command_says_what_it_does() -> None:
    assert [one.command_path for one in commands(ROOT) if not one.command.help] == []


def test_section_names_options_with_their_defaults() -> None:
    page = command_line_page()

    assert "| `--port`, `-p` `<int range>` | `0` | Port of page and REST; 0: a free one. |" in page
