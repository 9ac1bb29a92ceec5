"""`nnictl compress`: compression jobs that run as experiments."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from nni.cli.listing import Output, write_listing
from nni.cli.options import Json
from nni.cli.output import Messages, echo, table, write_json

if TYPE_CHECKING:
    from nni.compression.remote import JobStatus, RemoteJob, StepStatus

app = typer.Typer(help="Submit and follow compression jobs.", no_args_is_help=True)

_STEP_HEADERS: Final = ("Step", "Kind", "State", "Metric", "Parameters", "Latency ms", "Trial")
_JOB_HEADERS: Final = ("Id", "Name", "State", "Algorithm", "Steps")
_EXIT_FAILED: Final = 1

JobId = Annotated[
    str, typer.Argument(metavar="ID", show_default=False, help="The job: its id or its start.")
]
StepNumber = Annotated[
    int | None,
    typer.Option("--step", "-s", min=1, show_default=False, help="The step. Default: the last."),
]


@app.command("submit")
def submit(
    *,
    job: Annotated[
        Path, typer.Option("--job", "-j", show_default=False, help="JSON file with the job.")
    ],
    code: Annotated[
        Path,
        typer.Option("--code", "-c", help="Folder with the modules that the job names."),
    ] = Path(),
    name: Annotated[str, typer.Option("--name", "-n", help="Name of the experiment.")] = "",
    port: Annotated[
        int, typer.Option("--port", "-p", min=0, max=65535, help="Port of its page; 0: none.")
    ] = 0,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Print its progress until it has ended.")
    ] = False,
) -> None:
    """Check a compression job and start it; with --follow print its progress."""
    from nni.compression.remote import submit_job

    with submit_job(_checked(_read(job)), code, name=name, port=port) as submitted:
        messages = Messages()
        messages.info(f"Submitted job {submitted.id}")
        if follow:
            _follow(submitted)
        else:
            messages.info(f"Its progress: nnictl compress status {submitted.id} --follow")


@app.command("status")
def status(
    job_id: JobId,
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Print changes until the job has ended.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Print state and results of a job and of each step."""
    with _job(job_id) as job:
        if follow and not as_json:
            _follow(job)
            return
        found = job.wait() if follow else job.status()
    if as_json:
        write_json(_record(found))
    else:
        _show(found)


@app.command("log")
def log(job_id: JobId, *, step: StepNumber = None) -> None:
    """Print what a step has written to stderr and stdout."""
    with _job(job_id) as job:
        for piece in job.output(step):
            echo(piece.decode("utf-8", "replace"), end="")


@app.command("get")
def get(
    job_id: JobId,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where the files go.")],
    *,
    step: StepNumber = None,
) -> None:
    """Download the files of a step that has succeeded: model, masks, results."""
    with _job(job_id) as job:
        target = job.fetch(folder, step)
    names = ", ".join(sorted(path.name for path in target.iterdir()))
    Messages().info(f"{target} holds {names}")


@app.command("list")
def list_all(*, output: Output = "table", as_json: Json = False) -> None:
    """Print all compression jobs, newest first."""
    from nni.compression.remote import list_jobs

    jobs = list_jobs()
    records = [_record(one) for one in jobs]
    rows = [
        (one.id, one.name, one.state, one.algorithm, f"{one.done} of {len(one.steps)}")
        for one in jobs
    ]
    write_listing(records, _JOB_HEADERS, lambda: rows, output=output, as_json=as_json)


@app.command("cancel")
def cancel(job_id: JobId) -> None:
    """Stop a job; its finished steps stay, and `resume` continues after them."""
    with _job(job_id) as job:
        job.cancel()
        Messages().info(f"Job {job.id} is stopped")


@app.command("resume")
def resume(job_id: JobId) -> None:
    """Go on with a stopped or failed job after its last step that succeeded."""
    with _job(job_id) as job:
        job.resume()
        Messages().info(f"Job {job.id} goes on")


def _read(path: Path) -> dict[str, Any]:
    from nni.experiment.errors import ConfigError, Problem

    try:
        found = json.loads(path.read_text("utf-8"))
    except OSError as error:
        problem = Problem("--job", f"cannot be read: {error.strerror}", str(path))
        raise ConfigError([problem]) from error
    except ValueError as error:
        raise ConfigError([Problem("--job", f"must be JSON: {error}", str(path))]) from error
    if not isinstance(found, dict):
        raise ConfigError([Problem("--job", "must hold a JSON object", str(path))])
    return found


def _checked(job: dict[str, Any]) -> dict[str, Any]:
    """Return a job whose description breaks no rule; raise ConfigError for any other."""
    from nni.compression.job import JobDescription, JobError
    from nni.experiment.errors import ConfigError, Problem

    try:
        JobDescription.of(job)
    except JobError as error:
        raise ConfigError([Problem(error.field, error.problem)]) from error
    return job


@contextmanager
def _job(word: str) -> Iterator[RemoteJob]:
    """Yield the handle of the job that an id, or its start, means."""
    from nni.cli.session import experiment
    from nni.compression.remote import RemoteJob

    with experiment(word) as (client, job_id):
        yield RemoteJob(job_id, client)


def _follow(job: RemoteJob) -> None:
    """Print each change of a job; exit with 1 if it ends before it is complete."""
    shown: tuple[StepStatus, ...] = ()
    last: JobStatus | None = None
    for last in job.follow():
        before = dict(zip((step.number for step in shown), shown, strict=True))
        for step in last.steps:
            if step != before.get(step.number) and step.state != "PENDING":
                echo(_line(step))
        shown = last.steps
    if last is not None:
        _show(last)
        if not last.complete:
            raise typer.Exit(_EXIT_FAILED)


def _line(step: StepStatus) -> str:
    metric = step.result.get("default")
    reached = f", metric {metric:.6g}" if isinstance(metric, float | int) else ""
    return f"step {step.number} ({step.kind}): {step.state}{reached}"


def _show(found: JobStatus) -> None:
    messages = Messages()
    name = f" ({found.name})" if found.name else ""
    messages.line(f"Job {found.id}{name}: {found.state}, {found.done} of {len(found.steps)} steps")
    messages.line(table(_STEP_HEADERS, [_row(step) for step in found.steps]))
    if found.message:
        messages.error(found.message)


def _row(step: StepStatus) -> tuple[object, ...]:
    result = step.result
    return (
        step.number,
        step.kind,
        step.state,
        result.get("default"),
        result.get("parameters"),
        result.get("latency_ms") or None,
        step.trial_id or None,
    )


def _record(found: JobStatus) -> dict[str, Any]:
    return {**asdict(found), "done": found.done, "complete": found.complete}
