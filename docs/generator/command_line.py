"""Reference page of `nnictl`, made from the tree of its commands."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, Final

import typer.main
from typer.core import TyperGroup, TyperOption

from docs.generator.markdown import code, page, table
from nni.cli.app import app

# typer carries its own copy of click, whose classes are not public: `Any` below stands for them.
_HIDDEN: Final = frozenset({"help", "install_completion", "show_completion"})


def command_line_page() -> str:
    """Return the page: usage, help, arguments and options of every command."""
    root = typer.main.get_command(app)
    blocks = ["# nnictl reference", "Every command, as `--help` shows it."]
    for context in commands(root.make_context("nnictl", [], resilient_parsing=True)):
        blocks += _section(context)
    return page(*blocks)


def commands(context: Any) -> Iterator[Any]:  # noqa: ANN401 - see above
    """Yield the context of a command and those of all commands below it."""
    if not context.command.hidden:
        yield context
    if isinstance(context.command, TyperGroup):
        for name, command in context.command.commands.items():
            yield from commands(
                command.make_context(name, [], parent=context, resilient_parsing=True)
            )


def _section(context: Any) -> list[str]:  # noqa: ANN401 - see above
    command = context.command
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    blocks = [
        f"## {context.command_path}",
        f"```text\n{usage}\n```",
        inspect.cleandoc(command.help or ""),
    ]
    rows = [_row(one, context) for one in command.params if one.name not in _HIDDEN]
    if rows:
        blocks.append(table(["Name", "Default", "Meaning"], rows))
    if isinstance(command, TyperGroup):
        names = [code(name) for name, one in command.commands.items() if not one.hidden]
        blocks.append("Commands: " + ", ".join(names) + ".")
    return blocks


def _row(parameter: Any, context: Any) -> list[str]:  # noqa: ANN401 - see above
    if isinstance(parameter, TyperOption):
        spelled = ", ".join(code(one) for one in [*parameter.opts, *parameter.secondary_opts])
        if not parameter.is_flag:
            spelled += f" {code(parameter.metavar or parameter.display_type(context))}"
    else:
        spelled = code(parameter.metavar or parameter.display_name_raw)
    return [spelled, _default(parameter), parameter.help or ""]


def _default(parameter: Any) -> str:  # noqa: ANN401 - see above
    if parameter.required:
        return "required"
    default = parameter.default
    return "" if default is None or default is False or callable(default) else code(default)
