"""`nnictl top`: a view of running experiments that keeps itself up to date."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Annotated, Final

import typer

from nni.cli.options import OptionalId
from nni.cli.output import Messages, echo, local_time, table

if TYPE_CHECKING:
    from nni.experiment.client import ManagerClient
    from nni_proto.experiment.v1 import experiment_pb2

_TRIALS: Final = 15
"""Trials shown of each experiment: the newest."""
_CLEAR: Final = "\x1b[H\x1b[2J\x1b[3J"
"""Cursor home and empty screen, for terminals only."""


def register(app: typer.Typer) -> None:
    """Add the command `top` to ``app``."""
    app.command("top")(top)


def top(
    id: OptionalId = None,  # noqa: A002 - the documented name of the argument
    time: Annotated[
        int, typer.Option("--time", "-t", min=1, help="Seconds between two looks.")
    ] = 3,
) -> None:
    """Watch running experiments; Ctrl-C ends it."""
    from nni.cli.session import manager
    from nni.experiment.errors import WrongStateError

    never = threading.Event()
    try:
        with manager() as client:
            while _show(client, id):
                never.wait(time)
    except WrongStateError:
        pass
    except KeyboardInterrupt:
        return
    Messages().info("There is no experiment running.")


def _show(client: ManagerClient, word: str | None) -> bool:
    """Print the state of the running experiments once; return False if there are none."""
    from nni.cli import selection

    found = client.experiments()
    if word is not None and found:
        chosen = selection.one_running(word, [item.id for item in found])
        found = [item for item in found if item.id == chosen]
    if not found:
        return False
    text = "\n\n".join(_experiment_text(client, item) for item in found)
    if sys.stdout.isatty():
        sys.stdout.write(_CLEAR)
    echo(text + "\n")
    return True


def _experiment_text(client: ManagerClient, experiment: experiment_pb2.Experiment) -> str:
    from nni.experiment.records import experiment_metadata, trial_counts

    record = experiment_metadata(experiment)
    counts = trial_counts(experiment)
    head = (
        f"{record['id']}  {record['name']}  {record['status']}  port {record['port']}  "
        + " ".join(f"{name} {count}" for name, count in counts.items())
    )
    if experiment.HasField("best_value"):
        head += f"  best {experiment.best_value:.6g} (trial {experiment.best_trial_id})"
    return head + "\n" + _trials_text(client, experiment.id)


def _trials_text(client: ManagerClient, experiment_id: str) -> str:
    import itertools

    from nni.experiment.records import trial_job
    from nni_proto.trial.v1 import trial_service_pb2

    request = trial_service_pb2.ListTrialsRequest(
        experiment_id=experiment_id,
        order=trial_service_pb2.TRIAL_ORDER_SEQUENCE,
        descending=True,
        page_size=_TRIALS,
    )
    rows = []
    for trial in itertools.islice(client.trials(request), _TRIALS):
        job = trial_job(trial)
        metric = str(job.finalMetricData[-1].data) if job.finalMetricData else None
        start, end = local_time(job.startTime), local_time(job.endTime)
        rows.append((job.trialJobId, start, end, job.status, metric))
    return table(("Trial", "StartTime", "EndTime", "Status", "Metric"), rows)
