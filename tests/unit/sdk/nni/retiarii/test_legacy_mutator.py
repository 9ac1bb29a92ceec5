"""Mutators with the arguments of NNI 2.x."""

import warnings
from typing import Any

import pytest

from nni.nas.space.pytorch import PytorchGraphModelSpace
from nni.retiarii import Sampler
from nni.retiarii.deprecation import warn_once

with warnings.catch_warnings(action="ignore"):
    from tests.support.mutated_networks import WIDTHS, BlockMutator, MutatedNet

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Last(Sampler):
    """Sampler that takes the last candidate."""

    def choice(self, candidates: Any, mutator: Any, model: Any, index: int) -> Any:
        return candidates[-1]


def widths(candidates: Any) -> list[int]:
    return [one.parameters["out_features"] for one in candidates]


def test_dry_run_returns_lists_of_candidates() -> None:
    base = PytorchGraphModelSpace.from_model(MutatedNet())

    [candidates], model = BlockMutator("block").dry_run(base)

    assert widths(candidates) == list(WIDTHS)
    assert model.history == [base]


def test_choices_are_dimensions_of_a_space() -> None:
    space = PytorchGraphModelSpace.from_model(MutatedNet(), mutators=[BlockMutator("block")])

    assert [widths(one.values) for one in space.simplify().values()] == [list(WIDTHS)]  # type: ignore[attr-defined]  # a choice


def test_bound_sampler_decides() -> None:
    mutator = BlockMutator("block").bind_sampler(Last())

    model = mutator.apply(PytorchGraphModelSpace.from_model(MutatedNet()))

    [node] = model.get_nodes_by_label("block")
    assert node.operation.parameters["out_features"] == WIDTHS[-1]


def test_mutator_warns_of_the_newer_name_once() -> None:
    warn_once.cache_clear()

    with pytest.warns(DeprecationWarning, match="StationaryMutator") as caught:
        _ = [BlockMutator("block") for _ in range(2)]

    assert len(caught) == 1
