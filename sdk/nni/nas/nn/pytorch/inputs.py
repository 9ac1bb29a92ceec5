"""Choice among tensors: `InputChoice`, and what it is frozen to."""

from collections.abc import Sequence
from typing import Any, ClassVar, Final, Literal, get_args

import torch
from torch import Tensor, nn

from nni.mutable import CategoricalMultiple, Sample
from nni.nas.nn.pytorch.base import MutableModule, default_value, module_label
from nni.nas.space.graph_forms import SelectionForm

__all__ = ["ChosenInputs", "InputChoice", "ReductionType"]

ReductionType = Literal["mean", "concat", "sum", "none"]
"""How chosen tensors become one: `concat` along dimension 1; `none` leaves a list."""

_REDUCTIONS: Final = get_args(ReductionType)


class ChosenInputs(nn.Module):
    """Fixed choice among tensors, reduced to one.

    No chosen tensor gives None; a single one is returned as it is; `none` returns a list.

    Args:
        chosen: positions of the chosen tensors.
        reduction: how they become one.
        n_candidates: number of tensors that `forward` must get; any number without.

    Raises:
        ValueError: `reduction` is unknown.

    Examples:
        >>> ChosenInputs([0, 2], "sum")([torch.tensor(1), torch.tensor(2), torch.tensor(3)])
        tensor(4)
    """

    def __init__(
        self,
        chosen: Sequence[int] | int,
        reduction: ReductionType = "sum",
        *,
        n_candidates: int | None = None,
    ) -> None:
        super().__init__()
        self.chosen = [chosen] if isinstance(chosen, int) else list(chosen)
        self.reduction = checked_reduction(reduction)
        self.n_candidates = n_candidates

    def forward(self, candidate_inputs: Sequence[Tensor]) -> Any:  # noqa: ANN401 - see the class
        """Return the chosen tensors reduced to one; a list for `none`, None if none is chosen.

        Args:
            candidate_inputs: all tensors.

        Returns:
            A tensor; a list for the reduction `none`; None if nothing is chosen.

        Raises:
            ValueError: their number is wrong.
        """
        check_inputs(candidate_inputs, self.n_candidates)
        return reduced([candidate_inputs[index] for index in self.chosen], self.reduction)

    def extra_repr(self) -> str:
        """Return the choice, for the text of the module.

        Returns:
            Part of the text.
        """
        return f"chosen={self.chosen}, reduction={self.reduction!r}"


class InputChoice(MutableModule):
    """Choice of some of several tensors, which are reduced to one.

    In a sample it is the list of their positions. An unfrozen choice computes its default: the
    first `n_chosen` tensors.

    Args:
        n_candidates: number of tensors.
        n_chosen: number that is chosen; None for any subset.
        reduction: how the chosen ones become one: `sum`, `mean`, `concat` along dimension 1, or
            `none` for a list.
        weights: probability of each tensor in random samples; uniform without.
        label: name of the choice; choices of the same name are one dimension of the space.

    Raises:
        TypeError: `n_candidates` is no number.
        ValueError: `n_candidates`, `n_chosen`, `reduction` or `weights` is outside its range.

    Examples:
        >>> skip = InputChoice(3, n_chosen=2, label="skip")
        >>> len(list(skip.grid()))
        3
        >>> skip.freeze({"skip": [1, 2]})
        ChosenInputs(chosen=[1, 2], reduction='sum')
    """

    __jit_unused_properties__: ClassVar = ["label", "default_inputs", "mutables"]

    def __init__(
        self,
        n_candidates: int,
        n_chosen: int | None = 1,
        reduction: ReductionType = "sum",
        *,
        weights: Sequence[float] | None = None,
        label: str | None = None,
    ) -> None:
        super().__init__()
        self.n_candidates = n_candidates
        self.n_chosen = n_chosen
        self.reduction: ReductionType = checked_reduction(reduction)
        self.choice: CategoricalMultiple = self.add_mutable(
            _choice(n_candidates, n_chosen, weights, label)
        )
        self._default = list(default_value(self.choice))

    @classmethod
    def create_fixed_module(
        cls,
        sample: Sample,
        n_candidates: int,
        n_chosen: int | None = 1,
        reduction: ReductionType = "sum",
        *,
        weights: Sequence[float] | None = None,
        label: str | None = None,
    ) -> nn.Module:
        """Return a `ChosenInputs` of the inputs that a sample chooses.

        Args:
            sample: value of each label.
            n_candidates: as for the constructor, and so the following.
            n_chosen: number that is chosen.
            reduction: how the chosen ones become one.
            weights: probabilities, which are checked only.
            label: name of the choice.

        Returns:
            `ChosenInputs`.
        """
        choice = _choice(n_candidates, n_chosen, weights, label)
        return ChosenInputs(choice.freeze(sample), reduction, n_candidates=n_candidates)

    @property
    def label(self) -> str:
        """Label of the choice."""
        return self.choice.label

    @property
    def default_inputs(self) -> list[int]:
        """Positions of the tensors that an unfrozen choice computes; a copy."""
        return list(self._default)

    def graph_form(self) -> SelectionForm:
        """Return the choice, number of inputs and reduction, for the graph format."""
        return SelectionForm(self.choice, self.n_candidates, self.reduction)

    def freeze(self, sample: Sample) -> ChosenInputs:
        """Return a module that selects the inputs that a sample chooses, and reduces them."""
        chosen = self.choice.freeze(sample)
        frozen = ChosenInputs(chosen, self.reduction, n_candidates=self.n_candidates)
        frozen.training = self.training
        return frozen

    def forward(self, candidate_inputs: Sequence[Tensor]) -> Any:  # noqa: ANN401 - see ChosenInputs
        """Return the tensors of the default choice reduced to one; a list for `none`.

        Args:
            candidate_inputs: all tensors.

        Returns:
            A tensor; a list for the reduction `none`.

        Raises:
            ValueError: their number is not `n_candidates`.
        """
        check_inputs(candidate_inputs, self.n_candidates)
        return reduced([candidate_inputs[index] for index in self._default], self.reduction)

    def extra_repr(self) -> str:
        """Return the arguments, for the text of the module.

        Returns:
            Part of the text.
        """
        return (
            f"{self.n_candidates}, n_chosen={self.n_chosen}, reduction={self.reduction!r}, "
            f"label={str(self.label)!r}"
        )


def _choice(
    n_candidates: object,
    n_chosen: int | None,
    weights: Sequence[float] | None,
    label: str | None,
) -> CategoricalMultiple:
    if not isinstance(n_candidates, int):
        raise TypeError(
            f"n_candidates must be the number of tensors, got {n_candidates!r}; write "
            "InputChoice(n_candidates=3, n_chosen=1)"
        )
    return CategoricalMultiple(
        list(range(n_candidates)),
        n_chosen=n_chosen,
        weights=None if weights is None else list(weights),
        label=module_label(label, "InputChoice"),
    )


def checked_reduction(reduction: ReductionType) -> ReductionType:
    """Return a reduction unchanged; raise ValueError if it is unknown.

    Args:
        reduction: name of a reduction.

    Raises:
        ValueError: it is unknown.
    """
    if reduction not in _REDUCTIONS:
        raise ValueError(f"reduction must be one of {', '.join(_REDUCTIONS)}, got {reduction!r}")
    return reduction


def check_inputs(candidate_inputs: Sequence[Tensor], expected: int | None) -> None:
    """Raise ValueError unless the number of tensors is the expected one.

    Args:
        candidate_inputs: tensors.
        expected: their number; None for any.
    """
    if expected is not None and len(candidate_inputs) != expected:
        raise ValueError(
            f"candidate_inputs must be {expected} tensors, got {len(candidate_inputs)}"
        )


def reduced(tensors: list[Tensor], reduction: ReductionType) -> Any:  # noqa: ANN401 - see ChosenInputs
    """Return tensors summed, averaged or concatenated; None without any; the list for `none`.

    Args:
        tensors: of shapes that fit each other.
        reduction: how.

    Returns:
        A list for `none`; None without tensors; a tensor otherwise.
    """
    if reduction == "none":
        return tensors
    if len(tensors) < 2:  # noqa: PLR2004 - one is not reduced
        return tensors[0] if tensors else None
    if reduction == "concat":
        return torch.cat(tensors, 1)
    total = sum(tensors[1:], tensors[0])
    return total / len(tensors) if reduction == "mean" else total
