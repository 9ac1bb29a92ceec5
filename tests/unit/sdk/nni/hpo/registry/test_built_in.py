"""The committed table of algorithms: equal to the declarations, and complete."""

import subprocess
import sys

import pytest

from nni.hpo.registry.built_in import BUILT_IN
from nni.hpo.registry.entries import AlgorithmEntry
from nni.hpo.registry.generation import declared_entries

REMEDY = "run ./dev algorithms and commit what it writes"


def test_table_is_what_the_declarations_say() -> None:
    declared = {(entry.kind, entry.name): entry for entry in declared_entries()}
    written = {(entry.kind, entry.name): entry for entry in BUILT_IN}

    assert declared.keys() == written.keys(), REMEDY
    for key, entry in declared.items():
        assert entry == written[key], REMEDY
    assert [*declared] == [*written], REMEDY


def test_specified_algorithms_are_declared() -> None:
    names = {entry.name for entry in BUILT_IN}

    assert names >= {
        "TPE", "Random", "Anneal", "Evolution", "SMAC", "BatchTuner", "GridSearch",
        "NetworkMorphism", "MetisTuner", "GPTuner", "PBTTuner", "DNGOTuner", "Medianstop",
        "Curvefitting", "Hyperband", "BOHB", "auto", "CmaEs", "NSGA2", "ASHA", "MOASHA",
    }  # fmt: skip


@pytest.mark.parametrize("entry", BUILT_IN, ids=lambda entry: entry.name)
def test_page_is_complete(entry: AlgorithmEntry) -> None:
    assert entry.source == "nni"
    assert entry.summary.endswith(".")
    assert entry.use_when.endswith(".")
    assert entry.parallel.endswith(".") or entry.kind == "assessor"
    assert [one.name for one in entry.arguments if not one.meaning] == []
    assert [one.name for one in entry.arguments if one.type == "any"] == []


def test_table_is_read_without_numpy() -> None:
    program = (
        "import sys, nni.hpo.registry.built_in\n"
        "assert not {'numpy', 'scipy', 'grpc', 'pydantic'} & set(sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", program], check=False)

    assert done.returncode == 0
