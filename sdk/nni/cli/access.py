"""`nnictl token`: callers of services that other machines can reach.

Works on a file (`NNI_ACCESS_FILE` of the services), not on running services: they read it again
when it has changed. The file holds fingerprints; a token is shown once, when it is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from nni.cli.listing import Output, write_listing
from nni.cli.options import Json
from nni.cli.output import Messages, echo, write_json

if TYPE_CHECKING:
    from nni_wire.access import AccessEntry

app = typer.Typer(help="Make and withdraw tokens of a server.", no_args_is_help=True)

File: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--file",
        "-f",
        show_default=False,
        help="The access file. Default: NNI_ACCESS_FILE, else access.json of NNI_HOME.",
    ),
]
Name: TypeAlias = Annotated[
    str, typer.Argument(metavar="NAME", show_default=False, help="Whose it is.")
]


@app.command("create")
def create(
    *,
    name: Name,
    role: Annotated[
        str,
        typer.Option(
            "--role",
            "-r",
            help="viewer: see everything; user: run experiments, too; admin: everything; "
            "agent: what one that runs trials needs.",
        ),
    ] = "user",
    days: Annotated[
        int, typer.Option("--days", min=0, max=3650, help="Days until it ends; 0: never.")
    ] = 0,
    common_name: Annotated[
        str,
        typer.Option(
            "--common-name",
            show_default=False,
            help="Let in who has a client certificate of this subject, instead of a token.",
        ),
    ] = "",
    file: File = None,
    as_json: Json = False,
) -> None:
    """Create a token for a caller and print it; it is not shown again."""
    from nni.experiment.errors import ConfigError, Problem, WrongStateError
    from nni_wire.access import AccessEntry, fingerprint, new_token

    path = _path(file)
    entries = _read(path)
    if any(entry.name == name for entry in entries):
        raise WrongStateError(
            f"{path} has {name} already; withdraw that with: nnictl token rm {name}"
        )
    token = "" if common_name else new_token()
    now = datetime.now(UTC).replace(microsecond=0)
    try:
        entry = AccessEntry(
            name=name,
            role=role,
            sha256=fingerprint(token) if token else "",
            common_name=common_name,
            created=now,
            expires=now + timedelta(days=days) if days else None,
        )
    except ValueError as error:
        field, _, rule = str(error).partition(" ")
        raise ConfigError([Problem(field, rule)]) from error
    _write(path, [*entries, entry])
    if as_json:
        write_json({"name": name, "role": role, "token": token})
    else:
        echo(token or f"{name}: callers with a certificate of {common_name}")


@app.command("ls")
def ls(*, file: File = None, output: Output = "table", as_json: Json = False) -> None:
    """List the tokens and certificates of callers; no token is shown, none is kept."""
    entries = _read(_path(file))
    rows = [
        (
            entry.name,
            entry.role,
            f"certificate of {entry.common_name}" if entry.common_name else "token",
            _day(entry.created),
            _day(entry.expires),
        )
        for entry in entries
    ]
    names = ("name", "role", "by", "created", "expires")
    records = [dict(zip(names, row, strict=True)) for row in rows]
    headers = [name.capitalize() for name in names]
    write_listing(records, headers, lambda: rows, output=output, as_json=as_json)


@app.command("rm")
def rm(*, name: Name, file: File = None) -> None:
    """Revoke a token or certificate; running services refuse it at once."""
    from nni.experiment.errors import NotFoundError

    path = _path(file)
    entries = _read(path)
    left = [entry for entry in entries if entry.name != name]
    if len(left) == len(entries):
        raise NotFoundError(f"{path} has no {name}")
    _write(path, left)
    Messages().info(f"{name} is no longer let in.")


def _path(file: Path | None) -> Path:
    from nni.experiment.environment import access_file

    return file or access_file()


def _read(path: Path) -> tuple[AccessEntry, ...]:
    """Return the entries of an access file, none if it is missing; raise if it is malformed.

    Raises:
        RefusedError: it cannot be read, or is none.
    """
    from nni.experiment.errors import RefusedError
    from nni_wire.access import load_entries

    try:
        return load_entries(path.read_text("utf-8"))
    except FileNotFoundError:
        return ()
    except (OSError, ValueError) as error:
        raise RefusedError(f"{path} cannot be used as an access file: {error}") from error


def _write(path: Path, entries: Sequence[AccessEntry]) -> None:
    """Write an access file privately and atomically; raise RefusedError on failure.

    Raises:
        RefusedError: it cannot be written.
    """
    from nni.experiment.errors import RefusedError
    from nni.experiment.private_file import write_private
    from nni_wire.access import dump_entries

    try:
        write_private(path, dump_entries(entries))
    except OSError as error:
        raise RefusedError(f"{path} cannot be written: {error.strerror}") from error


def _day(instant: datetime | None) -> str:
    return "" if instant is None else instant.date().isoformat()
