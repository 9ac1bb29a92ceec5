"""Tabular problems: recorded losses of real models on real data, over grids.

A file holds a search space, perhaps with branches, and for each combination of branches a
`CurveTable`. A configuration gets the value of the nearest grid point.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

from nni.hpo.json_value import JsonValue
from nni.hpo.simulation.curve_table import CurveTable
from nni_benchmark.problem import Configuration, Kind, Losses, Problem

NESTED_TABLES: Final = ("digits",)
"""Tables with nested branches, in one file each."""
DATA_SETS: Final = ("digits300", "wine", "breast_cancer", "diabetes")
MODELS: Final = ("svm", "forest", "boosting", "mlp")
CURVES: Final = ("curves-digits-mlp", "curves-digits-sgd", "curves-breast_cancer-boosting")
"""Recorded learning curves, for schedulers."""
_SUFFIX: Final = ".json.gz"


def data_folder() -> Path:
    """Return the folder of recorded tables and runs."""
    return Path(str(resources.files("nni_benchmark"))) / "data"


def path_of(name: str) -> Path:
    """Return the path of a recorded file by its name without `.json.gz`; it need not exist."""
    return data_folder() / f"{name}{_SUFFIX}"


def read_text(path: Path) -> str:
    """Return the decompressed text of a recorded `.gz` file.

    Raises:
        OSError: there is no such file.
    """
    return gzip.decompress(path.read_bytes()).decode()


def write_text(path: Path, text: str) -> None:
    """Write a recorded file; the same text gives the same bytes."""
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


@dataclass(frozen=True, slots=True)
class GridTable:
    """Table of recorded losses over a grid for each choice of branches of a space."""

    space: dict[str, JsonValue]
    leaves: Mapping[str, CurveTable]
    """Tables by active branches, joined by `/`; curves of one step, to be minimised."""

    def loss(self, point: Configuration) -> float:
        """Return the recorded loss of the grid point nearest to a configuration.

        Raises:
            ValueError: the active branches have no table.
        """
        names: list[str] = []
        parameters: dict[str, JsonValue] = {}
        _flatten(point, names, parameters)
        leaf = "/".join(names)
        if leaf not in self.leaves:
            raise ValueError(f"branches must be one of {sorted(self.leaves)}, got {leaf!r}")
        return self.leaves[leaf].curve(parameters).values[-1]

    @property
    def optimum(self) -> float:
        """Least loss of all leaves."""
        return min(table.best_value for table in self.leaves.values())

    def to_json(self) -> str:
        """Return the table as JSON text."""
        leaves = {name: json.loads(table.to_json()) for name, table in self.leaves.items()}
        return json.dumps({"space": self.space, "leaves": leaves}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> GridTable:
        """Parse a table of recorded losses, a grid per choice of branches, from its JSON text.

        Raises:
            ValueError: the text is no table.
        """
        try:
            content = json.loads(text)
            space, found = content["space"], content["leaves"]
            if not isinstance(space, dict) or not isinstance(found, dict):
                raise ValueError("space and leaves must be objects")  # noqa: TRY004, TRY301 - mapped with the other faults
            leaves = {name: CurveTable.from_json(json.dumps(leaf)) for name, leaf in found.items()}
        except KeyError as error:
            raise ValueError(f"the text is no table of losses: it has no {error}") from error
        except (TypeError, ValueError) as error:
            raise ValueError(f"the text is no table of losses: {error}") from error
        return cls(space, leaves)


def _flatten(point: Configuration, names: list[str], parameters: dict[str, Any]) -> None:
    for name, value in point.items():
        if isinstance(value, dict):
            names.append(value["_name"])
            _flatten({key: one for key, one in value.items() if key != "_name"}, names, parameters)
        else:
            parameters[name] = value


@cache
def load_grid(name: str) -> GridTable:
    """Return a recorded table of losses by name; cached."""
    return GridTable.from_json(read_text(path_of(name)))


@cache
def load_curves(name: str) -> CurveTable:
    """Return a recorded table of learning curves by name; cached."""
    return CurveTable.from_json(read_text(path_of(name)))


def table_problem(name: str, table: GridTable, *kinds: Kind) -> Problem:
    """Build the problem to find the least loss in a recorded table."""

    def losses(point: Configuration) -> Losses:
        return (table.loss(point),)

    return Problem(name, table.space, losses, table.optimum, frozenset({"table", *kinds}))


def table_problems() -> tuple[Problem, ...]:
    """Return all problems on recorded tables: each model and data set, or a choice of models."""
    problems = [table_problem(name, load_grid(name), "nested") for name in NESTED_TABLES]
    for data in DATA_SETS:
        models = {model: load_grid(f"{data}-{model}") for model in MODELS}
        problems += [
            table_problem(f"{data}-{model}", table, "mixed") for model, table in models.items()
        ]
        problems.append(table_problem(f"{data}-model", joined(models), "nested"))
    return tuple(problems)


def joined(models: Mapping[str, GridTable]) -> GridTable:
    """Combine un-nested tables of several models into one with the model as a nested choice."""
    branches: list[JsonValue] = [{"_name": model, **table.space} for model, table in models.items()]
    leaves = {model: table.leaves[""] for model, table in models.items()}
    return GridTable({"model": {"_type": "choice", "_value": branches}}, leaves)
