"""Search spaces that tests share: one of each type, numbers only, nested, finite."""

from __future__ import annotations

from typing import Any, Final

EACH_TYPE: Final[dict[str, Any]] = {
    "choice": {"_type": "choice", "_value": [1, "two", None, True, [3, 4], 0.5]},
    "randint": {"_type": "randint", "_value": [-3, 9]},
    "uniform": {"_type": "uniform", "_value": [-1, 1]},
    "quniform": {"_type": "quniform", "_value": [0, 10, 2.5]},
    "loguniform": {"_type": "loguniform", "_value": [1e-5, 10]},
    "qloguniform": {"_type": "qloguniform", "_value": [0.1, 100, 1]},
    "normal": {"_type": "normal", "_value": [5, 2]},
    "qnormal": {"_type": "qnormal", "_value": [0, 3, 0.5]},
    "lognormal": {"_type": "lognormal", "_value": [0, 1]},
    "qlognormal": {"_type": "qlognormal", "_value": [0, 1, 0.5]},
}
"""Every type; each parameter has the name of its type."""

NUMBERS: Final[dict[str, Any]] = {
    "choice": {"_type": "choice", "_value": [8, 2.5, -1, 64]},
    **{
        kind: EACH_TYPE[kind]
        for kind in ("randint", "uniform", "quniform", "loguniform", "qloguniform")
    },
    "point": {"_type": "uniform", "_value": [3, 3]},
}
"""For algorithms that support numeric choices only."""
METIS: Final[dict[str, Any]] = {
    kind: NUMBERS[kind] for kind in ("choice", "randint", "uniform", "quniform")
}
"""The types that Metis supports."""
SMAC: Final[dict[str, Any]] = {
    kind: EACH_TYPE[kind] for kind in ("choice", "randint", "uniform", "quniform", "loguniform")
}
"""The types that SMAC supports."""

NONE: Final[dict[str, Any]] = {"_name": "none"}
LINEAR: Final[dict[str, Any]] = {
    "_name": "linear",
    "lr": {"_type": "loguniform", "_value": [1e-4, 1]},
}
LEAKY: Final[dict[str, Any]] = {
    "_name": "leaky",
    "slope": {"_type": "uniform", "_value": [0, 0.3]},
}
DEEP: Final[dict[str, Any]] = {
    "_name": "deep",
    "layers": {"_type": "randint", "_value": [1, 5]},
    "act": {"_type": "choice", "_value": [{"_name": "relu"}, LEAKY]},
}
"""An option of a nested choice with a nested choice of its own."""
NESTED: Final[dict[str, Any]] = {
    "model": {"_type": "choice", "_value": [NONE, LINEAR, DEEP, "plain"]},
    "batch": {"_type": "quniform", "_value": [16, 128, 16]},
}
SHARED_NAMES: Final[dict[str, Any]] = {
    "_type": "choice",
    "_value": [
        NONE,
        LINEAR,
        {
            "_name": "deep",
            "lr": {"_type": "uniform", "_value": [0, 1]},
            "act": {"_type": "choice", "_value": ["relu", LEAKY]},
        },
    ],
}
"""A nested choice two of whose options have a parameter of the same name, ``lr``."""

GRID: Final[dict[str, Any]] = {
    "a": {"_type": "choice", "_value": [1, 2, 3]},
    "b": {"_type": "randint", "_value": [0, 2]},
    "c": {"_type": "quniform", "_value": [2, 10, 5]},
}
"""Finite: 18 configurations."""
GRID_NESTED: Final[dict[str, Any]] = {
    "layer0": {
        "_type": "choice",
        "_value": [
            {"_name": "Empty"},
            {"_name": "Conv", "kernel_size": {"_type": "choice", "_value": [1, 2, 3, 5]}},
            {"_name": "Max_pool", "pooling_size": {"_type": "choice", "_value": [2, 3, 5]}},
        ],
    }
}
"""Finite and nested: eight configurations."""
BATCH: Final[dict[str, Any]] = {
    "combine_params": {
        "_type": "choice",
        "_value": [{"x": 1, "flag": True}, {"x": 2, "flag": False}, {"x": 3, "flag": None}],
    }
}
"""Space of `BatchTuner` with three configurations."""
