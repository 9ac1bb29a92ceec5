"""Tables of a benchmark database, derived from the dataclasses of its rows.

A benchmark has three tables: a config is what was trained and how, a trial is one training of it,
and an intermediate result belongs to one epoch of a trial. The names of tables and columns are
those of the published files, so that these files open without a conversion.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from types import NoneType
from typing import Any, Final, get_args, get_type_hints

_SQL_TYPES: Final[dict[type, str]] = {
    int: "INTEGER",
    float: "REAL",
    str: "TEXT",
    dict: "TEXT",
}
_REFERENCES: Final = {"config": "config_id", "trial": "trial_id"}
"""Fields that hold another row, and the columns of its id."""


@dataclass(frozen=True, slots=True)
class Column:
    """Column of a table: name, Python type, and whether it may be NULL.

    Args:
        name: name of the field, and of the column.
        kind: type of the values: `int`, `float`, `str`, or `dict` for JSON.
        nullable: whether a value may be missing, as a loss that was NaN.

    Examples:
        >>> Column("train_loss", float, nullable=True).sql()
        '"train_loss" REAL'
        >>> Column("hash", str, nullable=False).sql()
        '"hash" TEXT NOT NULL'
    """

    name: str
    kind: type
    nullable: bool

    def sql(self) -> str:
        """Return the column as it is declared in `CREATE TABLE`."""
        rule = "" if self.nullable else " NOT NULL"
        return f'"{self.name}" {_SQL_TYPES[self.kind]}{rule}'

    @property
    def averaged(self) -> bool:
        """Whether the values are floats, which queries average; means of other columns are NULL."""
        return self.kind is float


@dataclass(frozen=True, slots=True)
class BenchmarkSchema:
    """Tables of one benchmark, given as dataclasses: configs, results, results per epoch.

    Args:
        name: name of the benchmark, as `load_benchmark` takes it.
        config: dataclass of a config.
        stats: dataclass of a trial; its field `config` holds the config.
        intermediate: dataclass of an intermediate result; its field `trial` holds the trial.

    Examples:
        >>> from nni.nas.benchmark.nlp import NLP_SCHEMA
        >>> NLP_SCHEMA.table(NLP_SCHEMA.config)
        'nlptrialconfig'
        >>> [column.name for column in NLP_SCHEMA.columns(NLP_SCHEMA.config)]
        ['arch', 'dataset']
    """

    name: str
    config: type
    stats: type
    intermediate: type

    def table(self, row_type: type) -> str:
        """Return the name of the table of a row type: its own in lower case.

        Args:
            row_type: one of the three dataclasses.
        """
        return row_type.__name__.lower()

    def columns(self, row_type: type) -> tuple[Column, ...]:
        """Return the columns of a row type, without ids and references to other rows.

        Args:
            row_type: one of the three dataclasses.
        """
        return tuple(_columns(row_type))

    def statements(self) -> tuple[str, ...]:
        """Return the SQL statements that create the tables and the indexes of an empty database."""
        config, stats, intermediate = map(self.table, (self.config, self.stats, self.intermediate))
        return (
            self._create(self.config, ""),
            self._create(self.stats, f', "config_id" INTEGER NOT NULL REFERENCES "{config}" (id)'),
            self._create(
                self.intermediate, f', "trial_id" INTEGER NOT NULL REFERENCES "{stats}" (id)'
            ),
            *(
                f'CREATE INDEX "{config}_{column.name}" ON "{config}" ("{column.name}")'
                for column in self.columns(self.config)
                if column.kind in {str, dict}
            ),
            f'CREATE INDEX "{stats}_config" ON "{stats}" ("config_id")',
            f'CREATE INDEX "{intermediate}_trial" ON "{intermediate}" ("trial_id")',
        )

    def _create(self, row_type: type, reference: str) -> str:
        columns = ", ".join(column.sql() for column in self.columns(row_type))
        table = self.table(row_type)
        return f'CREATE TABLE "{table}" ("id" INTEGER NOT NULL PRIMARY KEY, {columns}{reference})'


def _columns(row_type: type) -> Iterator[Column]:
    hints = get_type_hints(row_type)
    for field in fields(row_type):
        if field.name in _REFERENCES:
            continue
        hint = hints[field.name]
        alternatives = [one for one in get_args(hint) if isinstance(one, type)]
        nullable = NoneType in alternatives
        kinds = [one for one in alternatives if one is not NoneType] if nullable else [hint]
        kind: Any = kinds[0]
        yield Column(field.name, getattr(kind, "__origin__", kind), nullable)


def canonical_json(value: object) -> str:
    """Return the one text by which equal dictionaries are stored: sorted keys, no blanks.

    Args:
        value: JSON value, such as an architecture.

    Examples:
        >>> canonical_json({"b": [1], "a": "x"})
        '{"a":"x","b":[1]}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def stored_texts(value: object) -> tuple[str, str]:
    """Return the two texts by which a dictionary may be stored: without and with blanks.

    Files differ in the blanks after `,` and `:`; both forms have sorted keys.

    Args:
        value: JSON value, such as an architecture.

    Examples:
        >>> stored_texts({"a": 1, "b": 2})
        ('{"a":1,"b":2}', '{"a": 1, "b": 2}')
    """
    return canonical_json(value), json.dumps(value, sort_keys=True)
