"""`nnictl log`: output of `nnictl` and of trials."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from nni.cli.listing import Output, write_listing
from nni.cli.options import Json, OptionalId, OptionalTrialId
from nni.cli.output import Messages, echo, write_stream
from nni.experiment.printable_text import PrintableStream

if TYPE_CHECKING:
    from nni_proto.trial.v1 import trial_pb2

app = typer.Typer(help="Print logs.", no_args_is_help=True)

# `-h` means head here, as documented; help is only `--help`.
_HEAD_NOT_HELP: Final = {"help_option_names": ["--help"]}

Head = Annotated[
    int | None,
    typer.Option("--head", "-h", "-H", min=1, show_default=False, help="Only the first N lines."),
]
Tail = Annotated[
    int | None,
    typer.Option("--tail", "-t", "-T", min=1, show_default=False, help="Only the last N lines."),
]
STREAMS: Final = ("stdout", "stderr")
Follow = Annotated[
    bool, typer.Option("--follow", "-f", help="Print what the trial writes, until it ends.")
]
Stream = Annotated[str, typer.Option("--stream", "-s", help="What to follow: stdout or stderr.")]
PathOnly = Annotated[bool, typer.Option("--path", "-p", help="Only the path of the file.")]


@app.command("stdout", context_settings=_HEAD_NOT_HELP)
def stdout(
    *,
    id: OptionalId = None,  # noqa: A002 - the documented name of the argument
    head: Head = None,
    tail: Tail = None,
    path: PathOnly = False,
) -> None:
    """Print what nnictl wrote to its output when it started the experiment."""
    _print(id, "nnictl_stdout.log", head, tail, path_only=path)


@app.command("stderr", context_settings=_HEAD_NOT_HELP)
def stderr(
    *,
    id: OptionalId = None,  # noqa: A002 - the documented name of the argument
    head: Head = None,
    tail: Tail = None,
    path: PathOnly = False,
) -> None:
    """Print the warnings and errors of nnictl when it started the experiment."""
    _print(id, "nnictl_stderr.log", head, tail, path_only=path)


def _print(
    word: str | None, name: str, head: int | None, tail: int | None, *, path_only: bool
) -> None:
    from nni.cli.session import experiment
    from nni.experiment.errors import NotFoundError

    with experiment(word) as (client, experiment_id):
        folder = Path(client.get(experiment_id).experiment.directory)
    path = folder / "log" / name
    if path_only:
        echo(str(path))
        return
    try:
        text = path.read_text("utf-8", "replace")
    except FileNotFoundError as error:
        raise NotFoundError(
            f"{path} does not exist: the experiment was not started by nnictl"
        ) from error
    for line in cut(text.splitlines(), head, tail):
        echo(line)


def cut(lines: list[str], head: int | None, tail: int | None) -> list[str]:
    """Return the first ``head`` lines, or the last ``tail``, or all."""
    if head is not None:
        return lines[:head]
    return lines[-tail:] if tail is not None else lines


@app.command("trial")
def trial(
    *,
    id: OptionalId = None,  # noqa: A002 - the documented name of the argument
    trial_id: OptionalTrialId = None,
    follow: Follow = False,
    stream: Stream = "stdout",
    output: Output = "table",
    as_json: Json = False,
) -> None:
    """Print where a trial writes; without --trial_id where all do. With --follow what it writes."""
    from nni.cli.session import experiment
    from nni.experiment.errors import RefusedError
    from nni_proto.trial.v1 import trial_service_pb2

    if follow:
        if as_json or output != "table":
            raise RefusedError("--follow prints text; leave out --output and --json")
        _follow(id, trial_id, stream)
        return
    with experiment(id) as (client, experiment_id):
        if trial_id is not None:
            found = [client.trial(experiment_id, trial_id)]
        else:
            request = trial_service_pb2.ListTrialsRequest(experiment_id=experiment_id)
            found = list(client.trials(request))
    if trial_id is not None and output == "table" and not as_json:
        messages, path = Messages(), log_path(found[0])
        messages.line(f"trial log path: {path}")
        if found[0].HasField("started_at") and not Path(path).exists():
            command = f"nnictl log trial {experiment_id} --trial_id {trial_id} --follow"
            messages.warning(f"the file is not on this machine; print it with: {command}")
        return
    records = [{"trialJobId": item.id, "logPath": log_path(item)} for item in found]
    rows = [tuple(record.values()) for record in records]
    write_listing(records, ("Id", "LogPath"), lambda: rows, output=output, as_json=as_json)


def _follow(word: str | None, trial_id: str | None, stream: str) -> None:
    """Print a trial's output so far and as it grows until its end; RefusedError without an id."""
    from nni.cli.session import experiment
    from nni.experiment.errors import RefusedError
    from nni_proto.experiment.v1 import experiment_service_pb2 as pb

    if trial_id is None:
        raise RefusedError("--follow needs the trial; give it with --trial_id")
    if stream not in STREAMS:
        raise RefusedError(f"--stream must be one of {', '.join(STREAMS)}, got {stream!r}")
    source = pb.LogSource.Value(f"LOG_SOURCE_TRIAL_{stream.upper()}")
    with experiment(word) as (client, experiment_id):
        client.trial(experiment_id, trial_id)  # an unknown one is refused at once
        write_pieces(client.follow_logs(experiment_id, source, trial_id=trial_id, follow=True))


def write_pieces(pieces: Iterable[bytes]) -> None:
    """Write a trial's output: as it is into files and pipes, safely to a terminal."""
    if not sys.stdout.isatty():
        for piece in pieces:
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
        return
    stream = PrintableStream()
    for piece in pieces:
        write_stream(stream.add(piece))
    write_stream(stream.end())


def log_path(trial: trial_pb2.Trial) -> str:
    """Return the file with a trial's output; empty while it has no folder."""
    return f"{trial.directory}/trial.log" if trial.directory else ""
