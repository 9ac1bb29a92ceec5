"""`nnictl experiment compare`: two experiments side by side, or the tuners of one."""

from __future__ import annotations

from dataclasses import asdict, astuple
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from nni.cli.completion import experiment_ids
from nni.cli.options import Json
from nni.cli.output import echo, json_text, table, write_json

if TYPE_CHECKING:
    from nni.experiment.client import ManagerClient
    from nni.experiment.comparison import ComparedExperiment

_VALUE_LENGTH: Final = 60
"""Characters of a field's value that the table shows."""
_LEAST_TUNERS: Final = 2
_ADDED: Final = "(added by hand)"
"""Row of the trials that no tuner proposed."""

Id = Annotated[
    str,
    typer.Argument(
        metavar="ID", show_default=False, help="An experiment.", autocompletion=experiment_ids
    ),
]
OtherId = Annotated[
    str,
    typer.Argument(
        metavar="[ID]",
        show_default=False,
        help="Another one; without it, the tuners of the first are compared.",
        autocompletion=experiment_ids,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command `compare` to `nnictl experiment`."""
    app.command("compare")(compare)


def compare(
    *,
    first: Id,
    second: OtherId = "",
    metric: Annotated[
        str, typer.Option("--metric", show_default=False, help="Which metric; else the first.")
    ] = "",
    mode: Annotated[
        Literal["minimize", "maximize"] | None,
        typer.Option("--mode", show_default=False, help="What is best; else as configured."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show how two experiments, or the tuners of one, differ: best results, regret, and more.

    Two experiments: configuration, best results, regret, best curves. One experiment of several
    tuners, or handed over to another: trials, best result, regret and median of each.
    """
    from nni.cli import selection
    from nni.cli.session import manager
    from nni.experiment.comparison import common_objective
    from nni.experiment.conversion import config_from_proto

    with manager(start=True) as client:
        known = [found.id for found in client.experiments(include_stopped=True)]
        if not second:
            _compare_tuners(client, selection.one(first, [], known), metric, mode, as_json=as_json)
            return
        ids = [selection.one(word, [], known) for word in (first, second)]
        configs = [config_from_proto(client.get(one).experiment.config).to_dict() for one in ids]
        chosen, direction = common_objective(configs[0], configs[1], metric, mode)
        pair = [
            _read(client, one, config, chosen, direction)
            for one, config in zip(ids, configs, strict=True)
        ]
    document = _document(pair[0], pair[1], chosen, direction)
    if as_json:
        write_json(document)
    else:
        _show(document)


def _compare_tuners(
    client: ManagerClient,
    experiment_id: str,
    metric: str,
    mode: Literal["minimize", "maximize"] | None,
    *,
    as_json: bool,
) -> None:
    """Show a row per tuner of an experiment; raise RefusedError if it has only one."""
    from nni.experiment.comparison import objective_of, tuner_rows
    from nni.experiment.conversion import config_from_proto
    from nni.experiment.errors import RefusedError

    config = config_from_proto(client.get(experiment_id).experiment.config).to_dict()
    own_metric, own_mode = objective_of(config)
    chosen, direction = metric or own_metric, mode or own_mode
    rows = tuner_rows(_results_by_tuner(client, experiment_id, chosen), direction)
    if sum(bool(row.tuner) for row in rows) < _LEAST_TUNERS:
        raise RefusedError(
            f"experiment {experiment_id} must have trials of two tuners to compare them, got "
            f"{', '.join(row.tuner for row in rows if row.tuner) or 'none'}; name a second "
            "experiment, or list several under tuners in the configuration"
        )
    if as_json:
        tuners = [_camel(asdict(row)) for row in rows]
        write_json(
            {"experiment": experiment_id, "metric": chosen, "mode": direction, "tuners": tuners}
        )
        return
    echo(f"Metric {chosen!r}, {direction}")
    headers = ("Tuner", "Trials", "WithResult", "Best", "Regret", "Median")
    echo(table(headers, [[row.tuner or _ADDED, *list(astuple(row))[1:]] for row in rows]))


def _camel(fields: dict[str, Any]) -> dict[str, Any]:
    """Rename `with_result` to `withResult` in place; return the fields."""
    fields["withResult"] = fields.pop("with_result")
    return fields


def _results_by_tuner(
    client: ManagerClient, experiment_id: str, metric: str
) -> list[tuple[str, float | None]]:
    """Return tuner and result of each trial, in order of creation."""
    from nni.experiment.comparison import number_of
    from nni.experiment.records import proposer_of
    from nni_proto.trial.v1 import trial_service_pb2
    from nni_wire.values import from_value

    request = trial_service_pb2.ListTrialsRequest(experiment_id=experiment_id)
    return [
        (
            proposer_of(trial),
            number_of(from_value(trial.final_metric.value), metric)
            if trial.HasField("final_metric")
            else None,
        )
        for trial in client.trials(request)
    ]


def _read(
    client: ManagerClient,
    experiment_id: str,
    config: dict[str, Any],
    metric: str,
    mode: Literal["minimize", "maximize"],
) -> ComparedExperiment:
    """Return the results of an experiment, and the curve of its best trial."""
    from nni.experiment.comparison import ComparedExperiment, number_of
    from nni_proto.common.v1 import metric_pb2
    from nni_proto.trial.v1 import trial_service_pb2
    from nni_wire.values import from_value

    request = trial_service_pb2.ListTrialsRequest(experiment_id=experiment_id)
    values: dict[str, float | None] = {
        trial.id: number_of(from_value(trial.final_metric.value), metric)
        if trial.HasField("final_metric")
        else None
        for trial in client.trials(request)
    }
    finished = {trial: value for trial, value in values.items() if value is not None}
    curve: list[float] = []
    if finished:
        best = (min if mode == "minimize" else max)(finished, key=finished.__getitem__)
        periodical = metric_pb2.METRIC_TYPE_PERIODICAL
        reports = client.metrics(experiment_id, best, periodical)
        numbers = [number_of(from_value(one.metric.value), metric) for one in reports]
        curve = [number for number in numbers if number is not None]
    return ComparedExperiment(experiment_id, config, tuple(values.values()), tuple(curve))


def _document(
    first: ComparedExperiment,
    second: ComparedExperiment,
    metric: str,
    mode: Any,  # noqa: ANN401
) -> dict[str, Any]:
    from nni.experiment.comparison import (
        best_so_far,
        config_differences,
        curve_rows,
        regret_rows,
    )

    return {
        "experiments": [
            {
                "id": one.id,
                "trials": len(one.values),
                "withResult": sum(value is not None for value in one.values),
                "best": (best_so_far(one.values, mode) or [None])[-1],
            }
            for one in (first, second)
        ],
        "metric": metric,
        "mode": mode,
        "differences": [asdict(one) for one in config_differences(first.config, second.config)],
        "regret": [asdict(row) for row in regret_rows(first, second, mode)],
        "bestCurves": [list(row) for row in curve_rows(first.curve, second.curve)],
    }


def _show(document: dict[str, Any]) -> None:
    ids = [one["id"] for one in document["experiments"]]
    keys = ("id", "trials", "withResult", "best")
    rows = [[one[key] for key in keys] for one in document["experiments"]]
    echo(f"Metric {document['metric']!r}, {document['mode']}")
    echo(table(("Id", "Trials", "WithResult", "Best"), rows))
    echo("\nConfiguration")
    differences = [
        [one["field"], _short(one["first"]), _short(one["second"])]
        for one in document["differences"]
    ]
    echo(table(("Field", *ids), differences) if differences else "no difference")
    if document["regret"]:
        echo("\nBest result and regret after trials")
        headers = ("Trials", *(f"Best {one}" for one in ids), *(f"Regret {one}" for one in ids))
        cells = [[row["trials"], *row["best"], *row["regret"]] for row in document["regret"]]
        echo(table(headers, cells))
    if document["bestCurves"]:
        echo("\nIntermediate results of the best trials")
        echo(table(("Step", *ids), document["bestCurves"]))


def _short(value: object) -> object:
    if value is None or isinstance(value, int | float):
        return value
    text = value if isinstance(value, str) else json_text(value, indent=None)
    return text if len(text) <= _VALUE_LENGTH else text[: _VALUE_LENGTH - 3] + "..."
