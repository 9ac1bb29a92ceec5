"""`nnictl algo`: registered algorithms."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nni.cli.listing import Output, write_listing
from nni.cli.options import Json
from nni.cli.output import Messages, table, write_json

if TYPE_CHECKING:
    from nni.hpo.registry.entries import AlgorithmEntry, Kind

app = typer.Typer(
    name="algo", help="Give your own algorithms names, and list all.", no_args_is_help=True
)

Name = Annotated[
    str, typer.Argument(metavar="NAME", show_default=False, help="The name of the algorithm.")
]


@app.command("register")
def register(
    *,
    meta: Annotated[
        Path,
        typer.Option(
            "--meta",
            "--meta_path",
            "-m",
            metavar="FILE",
            show_default=False,
            help="The meta file.",
        ),
    ],
) -> None:
    """Register an installed algorithm under a name, from a YAML file.

    Keys: algoType (tuner, assessor or advisor), builtinName (the name), className (with its
    module) and, if there is one, classArgsValidator.
    """
    from nni.experiment.config.yaml_file import read_yaml
    from nni.experiment.errors import ExperimentError
    from nni.hpo.registry import registrations

    content = read_yaml(meta, "--meta")
    try:
        entry = registrations.register(content)
    except ValueError as error:
        raise ExperimentError(f"{meta}: {error}") from error
    Messages().info(f"The {entry.kind} {entry.documented_path} is registered as {entry.name}.")


@app.command("unreg", hidden=True)
@app.command("unregister")
def unregister(name: Name) -> None:
    """Remove the registration of a name."""
    from nni.experiment.errors import ExperimentError
    from nni.hpo.registry import registrations

    try:
        registrations.unregister(name)
    except ValueError as error:
        raise ExperimentError(str(error)) from error
    Messages().info(f"{name} is not registered any more.")


@app.command("list")
def list_algorithms(*, output: Output = "table", as_json: Json = False) -> None:
    """List all algorithms: built-in and registered ones."""
    rows = [_row(entry) for entry in _entries()]
    cells = [list(row.values()) for row in rows]
    write_listing(rows, list(rows[0]), lambda: cells, output=output, as_json=as_json)


@app.command("show")
def show(name: Name, *, as_json: Json = False) -> None:
    """Show the page of one algorithm: what it does, its arguments and what it supports."""
    from nni.experiment.errors import ExperimentError

    entries = _entries()
    found = [entry for entry in entries if entry.name == name] or _same_name(name)
    if not found:
        known = ", ".join(entry.name for entry in entries)
        raise ExperimentError(f"no algorithm has the name {name!r}; known: {known}")
    if as_json:
        pages = [_details(entry) | {"Arguments": entry.argument_rows()} for entry in found]
        write_json(pages[0] if len(pages) == 1 else pages)
        return
    messages = Messages()
    for entry in found:
        rows = entry.argument_rows()
        messages.line(table(["", ""], list(_details(entry).items())).partition("\n")[2])
        if rows:
            messages.line("")
            messages.line(table(list(rows[0]), [list(row.values()) for row in rows]))


def _entries() -> list[AlgorithmEntry]:
    from nni.experiment.errors import ExperimentError
    from nni.hpo.registry.factory import algorithms

    try:
        return list(algorithms())
    except ValueError as error:
        raise ExperimentError(str(error)) from error


def _same_name(name: str) -> list[AlgorithmEntry]:
    """Return the entry of each kind that a name means, such as `GPTuner` for `gp`; [] if none."""
    from nni.hpo.registry.factory import find

    found: list[AlgorithmEntry] = []
    kinds: tuple[Kind, ...] = ("tuner", "assessor", "advisor")
    for kind in kinds:
        with contextlib.suppress(ValueError):
            found.append(find(kind, name))
    return found


def _row(entry: AlgorithmEntry) -> dict[str, str]:
    module, _, class_name = entry.documented_path.rpartition(".")
    return {
        "Name": entry.name,
        "Type": f"{entry.kind}s",
        "Source": "nni" if entry.source == "nni" else "User",
        "Class Name": class_name,
        "Module Name": module,
    }


def _details(entry: AlgorithmEntry) -> dict[str, str]:
    from nni.hpo.registry.factory import argument_names

    page = {"Summary": entry.summary, "Use When": entry.use_when, "Reference": entry.reference}
    return {
        **_row(entry),
        **{label: text for label, text in page.items() if text},
        "Class Arguments": ", ".join(argument_names(entry)) or "unknown",
        **{label.title(): text for label, text in entry.capabilities.items() if text},
        "Extra": entry.extra or "none",
    }
