"""Tables from dataclasses."""

import sqlite3

import pytest

from nni.nas.benchmark.catalogue import SCHEMAS
from nni.nas.benchmark.nasbench201 import NB201_SCHEMA
from nni.nas.benchmark.schema import BenchmarkSchema, Column, canonical_json, stored_texts


def test_tables_and_columns_have_the_names_of_the_published_files() -> None:
    connection = sqlite3.connect(":memory:")
    for statement in NB201_SCHEMA.statements():
        connection.execute(statement)

    found = {
        table: {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    }
    connection.close()

    assert set(found) == {"nb201trialconfig", "nb201trialstats", "nb201intermediatestats"}
    assert found["nb201trialconfig"] == {
        *("id", "arch", "num_epochs", "num_channels", "num_cells", "dataset")
    }
    assert {"id", "config_id", "seed", "ori_test_loss"} <= found["nb201trialstats"]
    assert {"id", "trial_id", "current_epoch"} <= found["nb201intermediatestats"]


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=list(SCHEMAS))
def test_losses_may_be_missing_and_identities_may_not(schema: BenchmarkSchema) -> None:
    columns = [
        column
        for row_type in (schema.config, schema.stats, schema.intermediate)
        for column in schema.columns(row_type)
    ]

    assert all(column.nullable for column in columns if column.name.endswith("loss"))
    assert not any(column.nullable for column in columns if column.kind is not float)


def test_means_are_of_measurements_only() -> None:
    assert Column("valid_acc", float, nullable=False).averaged
    assert not Column("seed", int, nullable=False).averaged


def test_equal_dictionaries_have_one_text() -> None:
    assert canonical_json({"b": 1, "a": [2]}) == canonical_json({"a": [2], "b": 1})
    assert set(stored_texts({"b": 1, "a": 2})) == {'{"a":2,"b":1}', '{"a": 2, "b": 1}'}
