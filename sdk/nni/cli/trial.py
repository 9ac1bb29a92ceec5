"""`nnictl trial`: list, kill and add trials."""

from __future__ import annotations

import itertools
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nni.cli.listing import Output, write_listing
from nni.cli.options import Json, OptionalId, TrialId
from nni.cli.output import Messages, json_text, local_time, write_json

if TYPE_CHECKING:
    from nni_proto.trial.v1 import trial_pb2, trial_service_pb2

app = typer.Typer(help="List, kill and add trials.", no_args_is_help=True)

_HEADERS = ("Id", "No.", "Status", "StartTime", "EndTime", "Metric", "Parameters", "Message")
_MESSAGE_LENGTH = 200
"""Characters of a message that a table shows."""

Top = Annotated[
    int | None,
    typer.Option("--head", min=1, show_default=False, help="Only the N with the highest metric."),
]
Bottom = Annotated[
    int | None,
    typer.Option("--tail", min=1, show_default=False, help="Only the N with the lowest metric."),
]


@app.command("ls")
def ls(
    *,
    id: OptionalId = None,  # noqa: A002 - the documented name of the argument
    head: Top = None,
    tail: Bottom = None,
    output: Output = "table",
    as_json: Json = False,
) -> None:
    """List trials; with --head or --tail only those that have a result."""
    from nni.cli.session import experiment
    from nni.experiment.errors import RefusedError
    from nni.experiment.records import trial_job

    if head is not None and tail is not None:
        raise RefusedError("--head and --tail exclude each other; give one of them")
    with experiment(id) as (client, experiment_id):
        found = client.trials(_request(experiment_id, head, tail))
        trials = list(itertools.islice(found, head or tail))
    records = [{"id": trial.id, **asdict(trial_job(trial)), **_reason(trial)} for trial in trials]
    write_listing(records, _HEADERS, lambda: map(_row, records), output=output, as_json=as_json)


def _request(
    experiment_id: str, head: int | None, tail: int | None
) -> trial_service_pb2.ListTrialsRequest:
    from nni_proto.trial.v1 import trial_pb2, trial_service_pb2

    request = trial_service_pb2.ListTrialsRequest(experiment_id=experiment_id)
    if head is not None or tail is not None:
        request.states.append(trial_pb2.TRIAL_STATE_SUCCEEDED)
        request.with_result = True
        request.order = trial_service_pb2.TRIAL_ORDER_METRIC
        request.descending = head is not None
        request.page_size = min(head or tail or 0, 10000)
    return request


def _reason(trial: trial_pb2.Trial) -> dict[str, str]:
    """Return why a trial waits, was stopped or failed, as text and as the name of the cause."""
    from nni_proto.trial.v1 import cause_pb2

    fields = {"message": trial.reason} if trial.reason else {}
    if trial.wait.cause:
        name = cause_pb2.WaitCause.Name(trial.wait.cause)
        fields["waitCause"] = name.removeprefix("WAIT_CAUSE_")
    if trial.end.cause:
        name = cause_pb2.EndCause.Name(trial.end.cause)
        fields["endCause"] = name.removeprefix("END_CAUSE_")
    return fields


def _row(record: dict[str, Any]) -> list[object]:
    final = record["finalMetricData"]
    return [
        record["trialJobId"],
        record["sequenceId"],
        record["status"],
        local_time(record["startTime"]),
        local_time(record["endTime"]),
        _metric_text(final[-1]["data"]) if final else None,
        json_text(record["hyperParameters"][0]["parameters"], indent=None),
        record.get("message", "").partition("\n")[0][:_MESSAGE_LENGTH],
    ]


def _metric_text(data: object) -> object:
    if isinstance(data, dict) and isinstance(data.get("default"), int | float):
        return data["default"]
    return data if isinstance(data, int | float) else json_text(data, indent=None)


@app.command("kill")
def kill(trial_id: TrialId, id: OptionalId = None) -> None:  # noqa: A002 - documented
    """Cancel a live trial."""
    from nni.cli.session import experiment

    with experiment(id) as (client, experiment_id):
        client.kill_trial(experiment_id, trial_id)
    Messages().info(f"Trial {trial_id} is killed.")


@app.command("add")
def add(
    *,
    parameters: Annotated[
        str,
        typer.Option("--parameters", "-P", show_default=False, help="Its parameters as JSON."),
    ],
    id: OptionalId = None,  # noqa: A002 - the documented name of the argument
    no_check: Annotated[
        bool, typer.Option("--no-check", help="Take parameters outside the search space, too.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run a trial with parameters of your own; its result does not reach the tuner."""
    import json

    from nni.cli.session import experiment
    from nni.experiment.errors import ConfigError, Problem
    from nni.experiment.parameter_checks import check_parameters
    from nni_wire.values import to_value

    try:
        given = json.loads(parameters)
        value = to_value(given)
    except ValueError as error:
        raise ConfigError(
            [Problem("--parameters", f"must be JSON: {error}", parameters)]
        ) from error
    with experiment(id) as (client, experiment_id):
        if not no_check:
            config = client.get(experiment_id).experiment.config
            check_parameters("--parameters", given, config, "or give --no-check")
        parameter_id = client.add_trial(experiment_id, value)
    if as_json:
        write_json({"parameterId": parameter_id})
    else:
        Messages().info(f"The trial is accepted; its parameters have the id {parameter_id}.")
