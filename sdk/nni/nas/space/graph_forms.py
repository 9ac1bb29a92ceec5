"""Forms that modules have in graphs, if they are no plain modules.

The conversion of a model to a graph asks each mutable module for its form by `graph_form`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from nni.mutable import Mutable


@dataclass(frozen=True, slots=True)
class AlternativesForm:
    """One of several modules."""

    choice: Mutable
    """Choice of a name."""
    candidates: Mapping[Any, Any]
    """Name to module."""


@dataclass(frozen=True, slots=True)
class SelectionForm:
    """Some of several tensors, reduced to one."""

    choice: Mutable
    """Choice of positions."""
    n_candidates: int
    """Number of tensors."""
    reduction: str
    """How the chosen tensors become one."""


@dataclass(frozen=True, slots=True)
class RepetitionForm:
    """Sequence of modules, of which the first ones are used."""

    depth: int | Mutable
    """Number of modules that are used."""
    blocks: Sequence[Any]
    """The modules."""


@dataclass(frozen=True, slots=True)
class UnitForm:
    """Module that is constructed by its arguments, and is one node."""

    symbol: type
    """Class to construct when all arguments are fixed."""
    args: Sequence[Any]
    """Arguments that can only be passed by position."""
    kwargs: Mapping[str, Any]
    """Arguments by name, mutables included."""


GraphForm: TypeAlias = AlternativesForm | SelectionForm | RepetitionForm | UnitForm
