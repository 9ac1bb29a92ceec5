"""Spelling of a choice among values in the style of NNI 2.x: `ValueChoice`."""

import warnings
from collections.abc import Sequence
from typing import Any

from nni.mutable import Categorical

__all__ = ["ValueChoice"]


class ValueChoice(Categorical):
    """Deprecated choice among values, which warns; write `nni.choice(label, values)`.

    Deprecated. Unlike that of NNI 2.x it is no module, and is not called in `forward`: register
    it by `add_mutable`, and get its value by `nni.mutable.ensure_frozen`.

    Args:
        candidates: values, all different.
        prior: probability of each value in random samples; uniform without.
        label: name of the choice; choices of the same name are one dimension of the space.

    Examples:
        >>> with warnings.catch_warnings(action="ignore"):
        ...     width = ValueChoice([16, 32], label="width")
        >>> width.candidates, (width * 2).freeze({"width": 32})
        ([16, 32], 64)
    """

    def __init__(
        self,
        candidates: Sequence[Any],
        *,
        prior: Sequence[float] | None = None,
        label: str | None = None,
    ) -> None:
        warnings.warn(
            "ValueChoice(candidates, label=...) is deprecated; write nni.choice(label, candidates)",
            DeprecationWarning,
            stacklevel=2,
        )
        super().__init__(
            list(candidates), weights=None if prior is None else list(prior), label=label
        )

    @property
    def candidates(self) -> list[Any]:
        """Values; a copy."""
        return list(self.values)

    @classmethod
    def _load(cls, **arguments: Any) -> Any:  # noqa: ANN401 - those of the class that is not deprecated
        """Return the choice that `nni.load` makes: one that is not deprecated."""
        return Categorical._load(**arguments)  # noqa: SLF001 - the hook

    @property
    def trace_symbol(self) -> type:
        """Class that an equal choice is constructed by: the one that is not deprecated."""
        return Categorical
