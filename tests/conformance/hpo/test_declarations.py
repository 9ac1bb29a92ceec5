"""Every declared algorithm keeps the contract of declarations."""

import importlib

import pytest

from nni.hpo.registry.built_in import BUILT_IN
from nni.hpo.registry.entries import AlgorithmEntry
from nni.testing import DeclarationConformance

SUITE = [name for name in vars(DeclarationConformance) if name.startswith("test_")]


def class_of(entry: AlgorithmEntry) -> type:
    module, _, name = entry.class_path.partition(":")
    found = getattr(importlib.import_module(module), name)
    assert isinstance(found, type)
    return found


@pytest.mark.parametrize("entry", BUILT_IN, ids=lambda entry: entry.name)
@pytest.mark.parametrize("test", SUITE)
def test_built_in_algorithm_keeps_the_contract(entry: AlgorithmEntry, test: str) -> None:
    suite = type("Suite", (DeclarationConformance,), {"algorithm": class_of(entry)})()

    getattr(suite, test)()


@pytest.mark.parametrize(
    ("kind", "name", "arguments"),
    [
        ("tuner", "Evolution", {"population_size": 100_000}),
        ("tuner", "Random", {"seed": -1}),
        ("tuner", "TPE", {"parallel_optimize": "yes"}),
    ],
)
def test_rules_that_once_differed_are_one(
    kind: str, name: str, arguments: dict[str, object]
) -> None:
    (entry,) = [entry for entry in BUILT_IN if (entry.kind, entry.name) == (kind, name)]
    assert not isinstance(entry.validator, str)

    with pytest.raises(ValueError, match=" must be ") as built:
        class_of(entry)(**arguments)
    with pytest.raises(ValueError, match=" must be ") as configured:
        entry.validator.validate_class_args(**arguments)

    assert str(configured.value) == f"classArgs of {name}: {built.value}"
