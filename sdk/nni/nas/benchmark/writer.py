"""Write side of a benchmark database: a new file, complete or absent."""

from __future__ import annotations

import math
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from nni.nas.benchmark.schema import BenchmarkSchema, Column, canonical_json


class BenchmarkWriter:
    """Writer of trials to an empty database, whose tables it creates.

    `create_database` makes it; it is no longer usable when that context ends.

    Args:
        connection: connection to an empty database.
        schema: tables to make.

    Examples:
        >>> import sqlite3
        >>> from nni.nas.benchmark.nlp import NLP_SCHEMA, NlpTrialConfig, NlpTrialStats
        >>> with closing(sqlite3.connect(":memory:")) as connection:
        ...     writer = BenchmarkWriter(connection, NLP_SCHEMA)
        ...     writer.add(NlpTrialStats(NlpTrialConfig({}, "ptb"), 4.1, 4.7, 4.6, 177.0))
        ...     connection.execute("SELECT dataset FROM nlptrialconfig").fetchall()
        [('ptb',)]
    """

    def __init__(self, connection: sqlite3.Connection, schema: BenchmarkSchema) -> None:
        self._connection = connection
        self._schema = schema
        self._config_ids: dict[tuple[object, ...], int] = {}
        for statement in schema.statements():
            connection.execute(statement)

    def add(
        self,
        stats: Any,  # noqa: ANN401 - dataclass that the schema names
        intermediates: Iterable[Any] = (),
        *,
        trial_id: int | None = None,
        config_id: int | None = None,
    ) -> None:
        """Insert a trial, its intermediate results, and its config unless that is already stored.

        Args:
            stats: instance of the schema's `stats`.
            intermediates: instances of the schema's `intermediate`.
            trial_id: id of the trial; None for the next free one.
            config_id: id of the config if it is new; None for the next free one.

        Raises:
            ValueError: a value is missing that the schema requires, or is NaN.
        """
        schema = self._schema
        config = self._config_id(stats.config, config_id)
        trial = self._insert(schema.stats, stats, trial_id, config_id=config)
        for one in intermediates:
            self._insert(schema.intermediate, one, None, trial_id=trial)

    def _config_id(self, config: object, wanted: int | None) -> int:
        cells = _cells(self._schema.columns(self._schema.config), config)
        if cells not in self._config_ids:
            self._config_ids[cells] = self._insert(self._schema.config, config, wanted)
        return self._config_ids[cells]

    def _insert(self, row_type: type, row: object, identity: int | None, **references: int) -> int:
        columns = self._schema.columns(row_type)
        names = ["id", *(column.name for column in columns), *references]
        values = [identity, *_cells(columns, row), *references.values()]
        places = ", ".join("?" for _ in names)
        # Names of tables and columns come from our dataclasses, values are bound.
        sql = f'INSERT INTO "{self._schema.table(row_type)}" ({", ".join(names)}) VALUES ({places})'  # noqa: S608
        inserted = self._connection.execute(sql, values).lastrowid
        assert inserted is not None
        return inserted


@contextmanager
def create_database(path: str | Path, schema: BenchmarkSchema) -> Iterator[BenchmarkWriter]:
    """Yield the writer of a new file, which replaces `path` at the end, if no error occurs.

    The file appears under its name when the context ends without an error; until then it lies
    beside it, so an interrupted conversion leaves no half database. A file that is there is
    replaced.

    Args:
        path: file to create; its folder is created if it is missing.
        schema: tables of the benchmark.

    Yields:
        Writer that adds trials.

    Examples:
        >>> from nni.nas.benchmark.nlp import NLP_SCHEMA, NlpTrialConfig, NlpTrialStats
        >>> with create_database("nlp.db", NLP_SCHEMA) as writer:
        ...     writer.add(NlpTrialStats(NlpTrialConfig({}, "ptb"), 4.1, 4.7, 4.6, 177.0))
        >>> Path("nlp.db").exists()
        True
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with closing(sqlite3.connect(partial)) as connection:
            yield BenchmarkWriter(connection, schema)
            connection.commit()
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _cells(columns: Sequence[Column], row: object) -> tuple[object, ...]:
    return tuple(_cell(column, getattr(row, column.name)) for column in columns)


def _cell(column: Column, value: object) -> object:
    if isinstance(value, float) and math.isnan(value):
        value = None
    if value is None and not column.nullable:
        raise ValueError(f"{column.name} must be a {column.kind.__name__}, got NaN or None")
    return canonical_json(value) if column.kind is dict else value
