"""`nnictl experiment export` and `import`: results to and from files."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from nni.cli.options import Filename, OptionalId
from nni.cli.output import Messages, json_text
from nni.csv_cells import guarded_cell


def register(app: typer.Typer) -> None:
    """Add the commands `export` and `import` to `nnictl experiment`."""
    app.command("export")(export)
    app.command("import")(import_data)


def export(
    *,
    filename: Filename,
    type_: Annotated[
        Literal["json", "csv"], typer.Option("--type", "-t", show_default=False, help="Format.")
    ],
    id: OptionalId = None,  # noqa: A002 - the documented name of the argument
    intermediate: Annotated[
        bool, typer.Option("--intermediate", "-i", help="Intermediate results too.")
    ] = False,
) -> None:
    """Write parameters and result of every trial that has one to a file."""
    from nni.cli.session import experiment
    from nni_wire.values import from_value

    with experiment(id) as (client, experiment_id):
        records = []
        for trial in client.export(experiment_id, include_intermediates=intermediate):
            record = {
                "parameter": from_value(trial.parameters),
                "value": from_value(trial.value),
                "id": trial.trial_id,
            }
            if intermediate:
                record["intermediate"] = [from_value(item) for item in trial.intermediates]
            records.append(record)
    text = json_text(records) + "\n" if type_ == "json" else csv_text(records)
    _write(filename, text)
    Messages().info(f"{len(records)} trials are exported to {filename}.")


def _write(path: Path, text: str) -> None:
    from nni.experiment.errors import ConfigError, Problem

    try:
        path.expanduser().write_text(text, "utf-8", newline="")
    except OSError as error:
        rule = f"must name a file that can be written: {error.strerror}"
        raise ConfigError([Problem("--filename", rule, str(path))]) from error


def csv_text(records: Sequence[dict[str, Any]]) -> str:
    """Return records as CSV (RFC 4180): id, parameters, reward, further metrics, intermediates.

    A mapping of metrics gives its `default` as `reward` and a column for each other name; nested
    values are written as JSON. A text that a spreadsheet would run as a formula begins with a
    quote, which `nni.plot` removes.
    """
    rows = [_row(record) for record in records]
    parameters = _ordered(row["parameters"] for row in rows)
    metrics = _ordered(row["metrics"] for row in rows)
    with_intermediates = any("intermediate" in record for record in records)
    header = ["id", *parameters, "reward", *metrics]
    text = io.StringIO()
    writer = csv.writer(text)
    names = [*header, "intermediate"] if with_intermediates else header
    writer.writerow(map(guarded_cell, names))
    for row in rows:
        cells = [
            row["id"],
            *(_cell(row["parameters"].get(name)) for name in parameters),
            _cell(row["reward"]),
            *(_cell(row["metrics"].get(name)) for name in metrics),
        ]
        if with_intermediates:
            cells.append(json_text(row["intermediate"], indent=None))
        writer.writerow(map(guarded_cell, cells))
    return text.getvalue()


def _row(record: dict[str, Any]) -> dict[str, Any]:
    parameter, value = record["parameter"], record["value"]
    metrics = dict(value) if isinstance(value, dict) else {}
    reward = metrics.pop("default", None) if isinstance(value, dict) else value
    return {
        "id": record["id"],
        "parameters": parameter if isinstance(parameter, dict) else {"parameter": parameter},
        "reward": reward,
        "metrics": metrics,
        "intermediate": record.get("intermediate", []),
    }


def _ordered(mappings: Any) -> list[str]:  # noqa: ANN401 - an iterable of mappings
    names: dict[str, None] = {}
    for mapping in mappings:
        names.update(dict.fromkeys(mapping))
    return list(names)


def _cell(value: object) -> object:
    if value is None:
        return ""
    return value if isinstance(value, str | int | float) else json_text(value, indent=None)


def import_data(filename: Filename, id: OptionalId = None) -> None:  # noqa: A002 - documented
    """Feed samples of a JSON file to the algorithm; an exported file will do."""
    from nni.cli.session import experiment
    from nni.experiment.config.yaml_file import read_json
    from nni.experiment.errors import ConfigError, Problem, RefusedError
    from nni.experiment.parameter_checks import learns_samples, sort_samples
    from nni_wire.values import to_value

    samples = read_json(filename, "--filename")
    if not isinstance(samples, list):
        rule = "must hold a JSON list of samples"
        remedy = "such as nnictl experiment export -t json writes"
        raise ConfigError([Problem("--filename", rule, str(filename), remedy)])
    messages = Messages()
    with experiment(id) as (client, experiment_id):
        config = client.get(experiment_id).experiment.config
        report = sort_samples(samples, config)
        if not learns_samples(config):
            name = config.advisor.name or config.tuner.name
            messages.warning(f"{name} does not learn from samples: its proposals stay as they are")
        for reason in report.reasons():
            messages.warning(f"not taken: {reason}")
        if not report.taken:
            raise RefusedError(
                f"none of the {len(samples)} samples of {filename} can be taken; nothing was sent"
            )
        for warning in client.import_data(experiment_id, to_value(list(report.taken))):
            messages.warning(warning)
    messages.info(
        f"{len(report.taken)} of {len(samples)} samples are given to the algorithm"
        + (f"; {len(report.refused)} are not." if report.refused else ".")
    )
