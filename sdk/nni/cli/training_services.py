"""`nnictl trainingservice`: platforms that other packages add."""

from __future__ import annotations

from typing import Annotated

import typer

from nni.cli.listing import Output, write_listing
from nni.cli.options import Json
from nni.cli.output import Messages

app = typer.Typer(
    name="trainingservice",
    help="Give platforms of your own names, and list them.",
    no_args_is_help=True,
)


@app.command("register")
def register(
    *,
    package: Annotated[
        str,
        typer.Option(
            "--package",
            metavar="MODULE",
            show_default=False,
            help="The module with the PlatformEntry `entry`, or MODULE:NAME of one.",
        ),
    ],
) -> None:
    """Register the platform of an installed package that has no entry point."""
    from nni.experiment.platform_registrations import register_platform

    name = register_platform(package)
    Messages().info(
        f"The platform {name} is registered. Services that run need no restart, unless they have "
        "used an earlier version of it: nnictl down."
    )


@app.command("unregister")
def unregister(
    name: Annotated[
        str, typer.Argument(metavar="NAME", show_default=False, help="The name of the platform.")
    ],
) -> None:
    """Remove the registration of a platform."""
    from nni.experiment.platform_registrations import unregister_platform

    unregister_platform(name)
    Messages().info(f"{name} is not registered any more.")


@app.command("list")
def list_platforms(*, output: Output = "table", as_json: Json = False) -> None:
    """List the platforms of other packages: registered ones, and those of entry points."""
    from nni.experiment.errors import ExperimentError
    from nni_wire.own_platforms import entry_point_names, registered_platforms

    try:
        registered = registered_platforms()
    except ImportError as error:
        raise ExperimentError(str(error)) from error
    rows = [{"Name": name, "Source": "entry point", "Entry": ""} for name in entry_point_names()]
    rows += [
        {"Name": name, "Source": "registered", "Entry": reference}
        for name, reference in sorted(registered.items())
    ]
    cells = [list(row.values()) for row in rows]
    write_listing(rows, ["Name", "Source", "Entry"], lambda: cells, output=output, as_json=as_json)
