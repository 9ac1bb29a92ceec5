"""`nnictl storage`: usage of the blob store, and garbage collection."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nni.cli.listing import Form, Output, write_listing
from nni.cli.options import Json
from nni.cli.output import Messages, echo, write_json

if TYPE_CHECKING:
    from nni_proto.bytes.v1 import byte_service_pb2

app = typer.Typer(
    help="Show and clean what is stored beside the logs: code, checkpoints, outputs, values.",
    no_args_is_help=True,
)

_HEADERS = ("Experiment", "Blobs", "Size")
_STEP = 1000
_KEYS_SHOWN = 20


@app.command("show")
def show(
    *,
    id: Annotated[  # noqa: A002 - as the other commands name it
        str | None, typer.Argument(metavar="ID", show_default=False, help="One experiment only.")
    ] = None,
    output: Output = "table",
    as_json: Json = False,
) -> None:
    """Print used bytes and limits of the blob store, in all and by experiment."""
    from nni.cli.session import manager

    with manager(start=True) as client:
        usage = client.usage(id or "")
    write_usage(usage, output=output, as_json=as_json)


def write_usage(
    usage: byte_service_pb2.GetUsageResponse, *, output: Form, as_json: bool = False
) -> None:
    """Write the usage to stdout; `wide`, CSV and YAML have the experiments without the totals.

    Args:
        usage: of the blob store.
        output: form that the user has chosen.
        as_json: whether `--json` was given.
    """
    record = _record(usage)
    if output == "json" or (as_json and output == "table"):
        write_json(record)
        return
    if output == "table":
        Messages().line(
            f"{sized(usage.used_bytes)} in {usage.blob_count} blobs, "
            f"of {_limit(usage.limit_bytes)}; "
            f"each experiment may have {_limit(usage.experiment_limit_bytes)}"
        )
    rows = [(one.experiment_id, one.blob_count, sized(one.used_bytes)) for one in usage.experiments]
    write_listing(record["experiments"], _HEADERS, lambda: rows, output=output, as_json=as_json)


@app.command("clean")
def clean(
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only tell what would be deleted.")
    ] = False,
    grace: Annotated[
        int | None,
        typer.Option(
            "--grace",
            metavar="SECONDS",
            min=0,
            show_default=False,
            help="Leave alone what is younger; below 1200 only while nothing is uploaded.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Delete stored blobs that nothing refers to any more; it also happens by itself."""
    from google.protobuf.duration_pb2 import Duration

    from nni.cli.session import manager

    wanted = None
    if grace is not None:
        wanted = Duration()
        wanted.FromTimedelta(timedelta(seconds=grace))
    with manager(start=True) as client:
        done = client.collect_garbage(dry_run=dry_run, grace=wanted)
    if as_json:
        write_json(
            {
                "dryRun": dry_run,
                "deletedCount": done.deleted_count,
                "deletedBytes": done.deleted_bytes,
                "keptCount": done.kept_count,
                "keptBytes": done.kept_bytes,
                "keys": list(done.keys),
            }
        )
        return
    verb = "would be deleted" if dry_run else "deleted"
    Messages().info(
        f"{done.deleted_count} blobs {verb} ({sized(done.deleted_bytes)}), "
        f"{done.kept_count} kept ({sized(done.kept_bytes)})."
    )
    for key in done.keys[:_KEYS_SHOWN]:
        echo(key)
    if done.deleted_count > _KEYS_SHOWN:
        echo(f"and {done.deleted_count - _KEYS_SHOWN} more")


def _record(usage: byte_service_pb2.GetUsageResponse) -> dict[str, Any]:
    return {
        "usedBytes": usage.used_bytes,
        "blobCount": usage.blob_count,
        "limitBytes": usage.limit_bytes,
        "experimentLimitBytes": usage.experiment_limit_bytes,
        "experiments": [
            {
                "id": one.experiment_id,
                "usedBytes": one.used_bytes,
                "blobCount": one.blob_count,
            }
            for one in usage.experiments
        ],
    }


def _limit(limit_bytes: int) -> str:
    return sized(limit_bytes) if limit_bytes else "any number"


def sized(size_bytes: int) -> str:
    """Return a number of bytes as text with a unit: `812 bytes`, `4.5 MB`."""
    size = float(size_bytes)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < _STEP:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= _STEP
    return f"{size:.1f} TB"
