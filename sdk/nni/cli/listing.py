"""Listings of records in the form that the user chooses: table, all fields, JSON, YAML or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias

import typer

from nni.cli.output import echo, json_text, table, write_json
from nni.csv_cells import guarded_cell

Form: TypeAlias = Literal["table", "wide", "json", "yaml", "csv"]
Output: TypeAlias = Annotated[
    Form,
    typer.Option(
        "--output",
        "-o",
        help="Form of the list: a table, one with all fields (wide), or data.",
    ),
]

_PLAIN: Final = (str, int, float)


def write_listing(
    records: Sequence[Mapping[str, Any]],
    headers: Sequence[str],
    rows: Callable[[], Iterable[Sequence[object]]],
    *,
    output: Form,
    as_json: bool = False,
) -> None:
    """Write records to stdout as JSON, YAML, CSV, or a table of ``rows`` or of all fields.

    Args:
        records: JSON values by the name of the field, one mapping for each line.
        headers: of the table.
        rows: returns the cells of the table.
        output: form that the user has chosen.
        as_json: whether `--json` was given, the older spelling of `--output json`.

    Raises:
        RefusedError: `--json` stands beside another form.
    """
    from nni.experiment.errors import RefusedError

    if as_json and output not in {"table", "json"}:
        raise RefusedError(f"--json and --output {output} exclude each other; give one of them")
    form = "json" if as_json else output
    if form == "json":
        write_json(list(records))
    elif form == "yaml":
        from nni.experiment.config.yaml_file import to_yaml

        echo(to_yaml([_plain(record) for record in records]), end="")
    elif form == "csv":
        echo(csv_of(records), end="")
    elif form == "wide":
        names = _fields(records) or list(headers)
        echo(table(names, [[_cell(record.get(name)) for name in names] for record in records]))
    else:
        echo(table(headers, rows()))


def csv_of(records: Sequence[Mapping[str, Any]]) -> str:
    """Return records as CSV, a column per field; nested values as JSON, formulas made texts.

    Names and messages come from other users and machines, so a text that a spreadsheet would run as
    a formula begins with a quote, as in the page's CSV.
    """
    names = _fields(records)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")  # a terminal shows other ends as escapes
    writer.writerow(map(guarded_cell, names))
    for record in records:
        cells = [_cell(record.get(name)) for name in names]
        writer.writerow(["" if cell is None else guarded_cell(cell) for cell in cells])
    return text.getvalue()


def _fields(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of all fields in the order in which they come."""
    return list(dict.fromkeys(name for record in records for name in record))


def _cell(value: object) -> object:
    return value if value is None or isinstance(value, _PLAIN) else json_text(value, indent=None)


def _plain(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return a value with lists and dicts only, which YAML can write."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
