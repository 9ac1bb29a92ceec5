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
    """Graph form of a module: one of several modules, by a choice."""

    choice: Mutable
    """Choice of a name."""
    candidates: Mapping[Any, Any]
    """Name to module."""


@dataclass(frozen=True, slots=True)
class SelectionForm:
    """Graph form of a module: some of several tensors, by a choice, reduced to one."""

    choice: Mutable
    """Choice of positions."""
    n_candidates: int
    """Number of tensors."""
    reduction: str
    """How the chosen tensors become one."""


@dataclass(frozen=True, slots=True)
class RepetitionForm:
    """Graph form of a module: the first modules of a sequence, by a depth."""

    depth: int | Mutable
    """Number of modules that are used."""
    blocks: Sequence[Any]
    """The modules."""


@dataclass(frozen=True, slots=True)
class UnitForm:
    """Graph form of a module: one node, by class and arguments."""

    symbol: type
    """Class to construct when all arguments are fixed."""
    args: Sequence[Any]
    """Arguments that can only be passed by position."""
    kwargs: Mapping[str, Any]
    """Arguments by name, mutables included."""


GraphForm: TypeAlias = AlternativesForm | SelectionForm | RepetitionForm | UnitForm
