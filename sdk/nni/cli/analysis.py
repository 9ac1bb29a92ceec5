"""`nnictl experiment importance | pareto`: analysis of an experiment's results."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

import typer

from nni.cli.listing import Output, write_listing
from nni.cli.options import Json, OptionalId
from nni.cli.output import Messages, json_text, write_json

_DEADLINE_S = 90.0
"""A model of thousands of trials takes seconds."""


def register(app: typer.Typer) -> None:
    """Add the commands `importance` and `pareto` to `nnictl experiment`."""
    app.command("importance")(importance)
    app.command("pareto")(pareto)


def importance(
    *,
    id: OptionalId = None,  # noqa: A002 - the documented name of the argument
    metric: Annotated[
        str, typer.Option("--metric", show_default=False, help="Which metric; else the first.")
    ] = "",
    output: Output = "table",
    as_json: Json = False,
) -> None:
    """Show how much of the differences between results each hyperparameter explains."""
    response = _query("importance", id, {"metric": metric} if metric else {})
    if output == "json" or (as_json and output == "table"):
        write_json(response)  # more than the list
        return
    rows = [[item["name"], _percent(item["share"])] for item in response["parameters"]]
    rows.append(["(several together)", _percent(response["interactions"])])
    headers = ("Parameter", "Explains")
    write_listing(response["parameters"], headers, lambda: rows, output=output, as_json=as_json)
    if output not in {"table", "wide"}:
        return
    Messages().info(f"Learnt from {response['trials']} trials; metric {response['metric']!r}.")


def pareto(
    *,
    id: OptionalId = None,  # noqa: A002 - the documented name of the argument
    objective: Annotated[
        list[str] | None,
        typer.Option(
            "--objective",
            show_default=False,
            help="`metric:minimize` or `metric:maximize`, once for each; else the configuration's.",
        ),
    ] = None,
    output: Output = "table",
    as_json: Json = False,
) -> None:
    """Show the trials that no other one beats in every objective."""
    response = _query("pareto", id, {"objectives": ",".join(objective)} if objective else {})
    if output == "json" or (as_json and output == "table"):
        write_json(response)  # more than the list
        return
    metrics = [item["metric"] for item in response["objectives"]]
    rows = [
        [
            point["trialJobId"],
            point["sequenceId"],
            *(point["values"].get(metric) for metric in metrics),
            json_text(point["parameters"], indent=None),
        ]
        for point in response["front"]
    ]
    headers = ("Id", "No.", *metrics, "Parameters")
    write_listing(response["front"], headers, lambda: rows, output=output, as_json=as_json)
    if output not in {"table", "wide"}:
        return
    left_out = [
        f"{response[word]} {word}" for word in ("infeasible", "incomplete") if response[word]
    ]
    note = f"; left out: {', '.join(left_out)}" if left_out else ""
    Messages().info(f"{len(rows)} of {response['trials']} trials are on the front{note}.")


def _query(name: str, word: str | None, query: dict[str, str]) -> dict[str, Any]:
    from nni.cli.session import experiment
    from nni.experiment.rest import get_json

    with experiment(word) as (client, experiment_id):
        endpoint = client.endpoint
        url = f"{endpoint.http}/api/v1/nni/experiments/{experiment_id}/{name}"
        if query:
            url = f"{url}?{urlencode(query)}"
        response: dict[str, Any] = get_json(url, endpoint.token, _DEADLINE_S)
    return response


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
