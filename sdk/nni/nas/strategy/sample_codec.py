"""Plain form of samples for checkpoints: values by their position among the choices.

A choice may be of any kind, such as a class or a module; its position is saved without a pickle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nni.mutable import Categorical, CategoricalMultiple, LabeledMutable, Sample
from nni.nas.space.mutator import FirstChoices, Mutator, RandomChoices


class SampleCodec:
    """Translator between samples of one space and plain values.

    Args:
        leaves: the space, as `simplify` returns it.

    Examples:
        >>> from nni.mutable import Categorical
        >>> from nni.nas.strategy.sample_codec import SampleCodec
        >>> codec = SampleCodec({"norm": Categorical([int, float], label="norm")})
        >>> codec.encode({"norm": float})
        {'norm': 1}
        >>> codec.decode({"norm": 1})
        {'norm': <class 'float'>}
    """

    def __init__(self, leaves: Mapping[str, LabeledMutable]) -> None:
        self._leaves = leaves

    def encode(self, sample: Mapping[str, Any]) -> dict[str, Any]:
        """Return a sample in plain values, choices by position, without labels of other spaces.

        Args:
            sample: label to value.

        Returns:
            Label to a number, or a list of numbers.
        """
        return {
            str(label): _encoded(self._leaves[label], value)
            for label, value in sample.items()
            if label in self._leaves
        }

    def decode(self, values: Mapping[str, Any]) -> Sample:
        """Return the sample of plain values; raise ValueError for those of another space.

        Args:
            values: what `encode` returned.

        Returns:
            Label to value.

        Raises:
            ValueError: the space has changed: a label or a choice is missing.
        """
        unknown = [label for label in values if label not in self._leaves]
        if unknown:
            raise ValueError(
                f"the state is of another space: it has no {unknown[0]!r}; "
                "resume with the space of the first run"
            )
        return {label: _decoded(self._leaves[label], value) for label, value in values.items()}


def _encoded(leaf: LabeledMutable, value: Any) -> object:  # noqa: ANN401 - a choice of the user
    match leaf:
        case Categorical():
            return position(leaf.values, value)
        case CategoricalMultiple():
            return [position(leaf.values, item) for item in value]
        case Mutator() if isinstance(value, FirstChoices):
            return None
        case Mutator() if isinstance(value, RandomChoices):
            return value.seed
    return value


def _decoded(leaf: LabeledMutable, value: Any) -> object:  # noqa: ANN401 - see _encoded
    match leaf:
        case Categorical():
            return _choice(leaf, leaf.values, value)
        case CategoricalMultiple():
            return [_choice(leaf, leaf.values, item) for item in value]
        case Mutator() if value is None:
            return FirstChoices()
        case Mutator() if isinstance(value, int):
            return RandomChoices(value)
    return value


def _choice(leaf: LabeledMutable, values: Sequence[Any], index: int) -> object:
    if index >= len(values):
        raise ValueError(
            f"the state is of another space: {leaf.label!r} has {len(values)} choices, "
            f"not {index + 1}; resume with the space of the first run"
        )
    return values[index]


def position(values: Sequence[Any], value: object) -> int:
    """Return the position of a choice: of the same object, else of an equal one; or raise.

    Raises:
        ValueError: there is none.
    """
    for index, one in enumerate(values):
        if one is value:
            return index
    for index, one in enumerate(values):
        if type(one) is type(value) and one == value:
            return index
    return list(values).index(value)
