"""Builds the objects that an experiment names, seeded so that a run can be repeated."""

import os
import platform
import random
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, Literal

from nni.hpo import registry

_NUMPY_SEEDS: Final = 2**32
"""`numpy.random.seed` takes less than this."""


def build(
    kind: Literal["tuner", "assessor", "advisor"], config: dict[str, Any], seed: int | None
) -> Any:  # noqa: ANN401 - a tuner, assessor or advisor
    """Build one algorithm.

    Args:
        kind: what it is used as.
        config: `name`, or `class_name` and perhaps `code_directory`; `class_args`.
        seed: for constructors of named algorithms that take one.

    Raises:
        Exception: whatever import or constructor raise.
    """
    if config.get("name"):
        return registry.create(kind, config["name"], config.get("class_args"), seed)
    return registry.create_custom(
        kind,
        config["class_name"],
        config.get("class_args"),
        config.get("code_directory") or None,
    )


def display_name(config: dict[str, Any]) -> str:
    """Return the name or class of an algorithm, for its suggestions' provenance."""
    return str(config.get("name") or config["class_name"])


def seed_global_generators(seed: int, *, custom: bool) -> None:
    """Seed what a careless algorithm may draw from.

    Args:
        seed: any int.
        custom: whether the user's own classes will run: they may use numpy's global generator.
            Built-in algorithms draw from their own, so numpy is not imported for them.
    """
    random.seed(seed)
    if custom and find_spec("numpy") is not None:
        import_module("numpy.random").seed(seed % _NUMPY_SEEDS)


def machine_provenance() -> dict[str, str]:
    """Return the versions and the machine that matter for repeating an algorithm's answers."""
    facts = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "system": platform.system(),
        "cpus": str(os.cpu_count()),
        "nni": str(getattr(import_module("nni"), "__version__", "unknown")),
    }
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        facts["numpy"] = str(numpy.__version__)
    return facts
