"""`Mutator` of NNI 2.x."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from nni.mutable import LabeledMutable, Mutable
from nni.nas.space import GraphModelSpace, MutationSampler, Mutator, StationaryMutator
from nni.retiarii.deprecation import warn_once


class LegacyMutator(StationaryMutator):
    """`Mutator` of NNI 2.x: its dry run returns lists of candidates.

    Args:
        sampler: what decides on the choices in `apply`; `bind_sampler` may set it later.
        label: name of the mutator; None for an automatic one.
    """

    def __init__(self, sampler: MutationSampler | None = None, label: str | None = None) -> None:
        warn_once("Mutator", "nni.nas.space.StationaryMutator")
        super().__init__(sampler=sampler, label=label)

    def dry_run(self, model: GraphModelSpace) -> tuple[Any, GraphModelSpace]:
        """Return the candidates of each choice, and the model after the first ones.

        Args:
            model: model to mutate; it stays as it is.
        """
        return Mutator.dry_run(self, model)

    def leaf_mutables(self, is_leaf: Callable[[Mutable], bool]) -> Iterable[LabeledMutable]:
        """Yield the choices that the mutator asks for on the bound model."""
        for choice in StationaryMutator.dry_run(self, self.bound_model)[0].values():
            yield from choice.leaf_mutables(is_leaf)
