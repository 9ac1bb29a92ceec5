"""Read side of a benchmark database: one query for all benchmarks.

A query opens the file for reading, and closes it when its generator ends or is dropped; several
processes and threads may query one file at the same time.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nni.nas.benchmark.schema import BenchmarkSchema, Column, stored_texts

Row = dict[str, Any]
"""Trial or intermediate result as a dictionary of its fields."""

_REDUCTIONS: Final = (None, "none", "mean")


def check_reduction(reduction: str | None) -> None:
    """Raise ValueError unless `reduction` is None, `"none"` or `"mean"`.

    Args:
        reduction: argument of a query function.

    Raises:
        ValueError: it is neither `None`, `"none"` nor `"mean"`.

    Examples:
        >>> check_reduction("mean")
        >>> check_reduction("sum")
        Traceback (most recent call last):
        ValueError: reduction must be None, 'none' or 'mean', got 'sum'
    """
    if reduction not in _REDUCTIONS:
        raise ValueError(f"reduction must be None, 'none' or 'mean', got {reduction!r}")


@dataclass(frozen=True, slots=True)
class BenchmarkDatabase:
    """Read-only queries of the trials in one benchmark's SQLite file.

    Args:
        path: SQLite file.
        schema: its tables.

    Examples:
        >>> from nni.nas.benchmark.nlp import NLP_SCHEMA, NlpTrialConfig, NlpTrialStats
        >>> from nni.nas.benchmark.writer import create_database
        >>> config = NlpTrialConfig(arch={"node_0_op": "linear"}, dataset="ptb")
        >>> with create_database("nlp.db", NLP_SCHEMA) as writer:
        ...     writer.add(NlpTrialStats(config, 4.1, 4.7, 4.6, 177.0))
        >>> next(BenchmarkDatabase("nlp.db", NLP_SCHEMA).query({"dataset": "ptb"}))["val_loss"]
        4.7
    """

    path: Path | str
    schema: BenchmarkSchema

    def query(
        self,
        conditions: Mapping[str, object],
        *,
        reduction: str | None = None,
        include_intermediates: bool = False,
    ) -> Generator[Row, None, None]:
        """Yield rows of trials, or means per config, that match all conditions; None matches all.

        Args:
            conditions: field of the config to its value; None matches every value. Dictionaries
                match by content, whatever the order of their keys.
            reduction: None or `"none"` for each trial by itself; `"mean"` for one row a config,
                whose measurements are means over the trials, and whose `id` and `seed` are None.
            include_intermediates: add the field `intermediates`, a list ordered by epoch; with
                `"mean"` each of its entries is the mean over the trials at that epoch.

        Yields:
            Fields of the trial, its `id`, and its config, nested with an `id` of its own.

        Raises:
            ValueError: `reduction` is unknown.
        """
        check_reduction(reduction)
        return self._rows(conditions, mean=reduction == "mean", nested=include_intermediates)

    def _rows(
        self, conditions: Mapping[str, object], *, mean: bool, nested: bool
    ) -> Generator[Row, None, None]:
        schema = self.schema
        stats, config = schema.columns(schema.stats), schema.columns(schema.config)
        where, values = _where(conditions)
        identity = "NULL" if mean else "t.id"
        order = "GROUP BY c.id ORDER BY c.id" if mean else "ORDER BY t.id"
        # Names of tables and columns come from our dataclasses, values are bound.
        sql = (
            f"SELECT {identity}, c.id, {_selected('t', stats, mean=mean)}, "  # noqa: S608
            f'{_selected("c", config)} FROM "{schema.table(schema.stats)}" t '
            f'JOIN "{schema.table(schema.config)}" c ON t.config_id = c.id {where} {order}'
        )
        with closing(self._connect()) as connection:
            for trial_id, config_id, *cells in connection.execute(sql, values):
                row = _row(stats, cells[: len(stats)])
                row["id"] = trial_id
                row["config"] = _row(config, cells[len(stats) :]) | {"id": config_id}
                if nested:
                    row["intermediates"] = self._intermediates(connection, trial_id, config_id)
                yield row

    def _intermediates(
        self, connection: sqlite3.Connection, trial_id: int | None, config_id: int
    ) -> list[Row]:
        """Return a trial's rows in order of epochs; without a trial, a config's means per epoch."""
        schema, mean = self.schema, trial_id is None
        columns = schema.columns(schema.intermediate)
        table = schema.table(schema.intermediate)
        if mean:
            source = (
                f'"{table}" i JOIN "{schema.table(schema.stats)}" t ON i.trial_id = t.id '
                "WHERE t.config_id = ? GROUP BY i.current_epoch"
            )
        else:
            source = f'"{table}" i WHERE i.trial_id = ?'
        sql = (
            f"SELECT {'NULL' if mean else 'i.id'}, "  # noqa: S608 - as above
            f"{_selected('i', columns, mean=mean, key='current_epoch')} FROM {source} "
            f"ORDER BY i.current_epoch{'' if mean else ', i.id'}"
        )
        rows = connection.execute(sql, (config_id if mean else trial_id,))
        return [_row(columns, cells) | {"id": identity} for identity, *cells in rows]

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(f"{Path(self.path).absolute().as_uri()}?mode=ro", uri=True)


def _selected(table: str, columns: Sequence[Column], *, mean: bool = False, key: str = "") -> str:
    """Return the SELECT list of columns; for means AVG of floats, the key itself, else NULL.

    Args:
        table: alias of the table.
        columns: its columns.
        mean: select means over the rows of a group; NULL for what has none.
        key: column that the rows are grouped by, which has one value in a group.
    """
    return ", ".join(
        f"{table}.{column.name}"
        if not mean or column.name == key
        else (f"AVG({table}.{column.name})" if column.averaged else "NULL")
        for column in columns
    )


def _row(columns: Sequence[Column], cells: Sequence[object]) -> Row:
    return {
        column.name: json.loads(cell) if column.kind is dict and isinstance(cell, str) else cell
        for column, cell in zip(columns, cells, strict=True)
    }


def _where(conditions: Mapping[str, object]) -> tuple[str, list[object]]:
    """Return the WHERE clause of conditions, without those that are None, and its values."""
    terms: list[str] = []
    values: list[object] = []
    for name, value in conditions.items():
        if value is None:
            continue
        if isinstance(value, Mapping):
            terms.append(f"c.{name} IN (?, ?)")
            values.extend(stored_texts(value))
        else:
            terms.append(f"c.{name} = ?")
            values.append(value)
    return (f"WHERE {' AND '.join(terms)}" if terms else ""), values
