"""Constraints that merely compare: one hyperparameter with a number or with another one."""

import re
from dataclasses import dataclass
from typing import Final

_NAME: Final = r"`[^`]+`|[^\W\d]\w*(?:/[^\W\d]\w*)*"
_NUMBER: Final = r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_RELATION: Final = re.compile(
    rf"\s*(?P<left>{_NAME})\s*(?P<operator><=|>=|<|>)\s*(?:(?P<number>{_NUMBER})|(?P<right>{_NAME}))\s*"
)


@dataclass(frozen=True, slots=True)
class Relation:
    """`left operator right`."""

    left: str
    """Name of a hyperparameter."""
    operator: str
    """One of < <= > >=."""
    right: str | float
    """Name of another one, or a number."""


def relation_of(text: str) -> Relation | None:
    """Return the comparison that a constraint is; None if it is anything else."""
    match = _RELATION.fullmatch(text)
    if match is None:
        return None
    right = float(match["number"]) if match["number"] else match["right"].strip("`")
    return Relation(match["left"].strip("`"), match["operator"], right)
