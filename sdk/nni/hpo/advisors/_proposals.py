"""Encoding of spaces for BOHB's model: a configuration is a row of coordinates and options."""

from random import Random
from typing import Protocol

import numpy as np

from nni.hpo.advisors._halving_advisor import flat_space
from nni.hpo.encoding.columns import BELL_WIDTH, Row, configuration_of, levels_of, rows_of
from nni.hpo.json_value import JsonValue
from nni.hpo.models.parzen import Frame
from nni.hpo.space.parser import place


class ProposalSpace(Protocol):
    """Encoder between configurations and rows, with draws from the prior."""

    frame: Frame
    """The prior over rows."""

    def draw(self, rng: Random) -> dict[str, JsonValue]:
        """Return a random configuration, drawn from the prior, that the space allows."""
        ...

    def row(self, configuration: JsonValue) -> Row:
        """Return a configuration as a row of coordinates and option numbers.

        Raises:
            ValueError: the configuration lies outside the space.
        """
        ...

    def configuration(self, row: Row) -> dict[str, JsonValue] | None:
        """Return the configuration nearest to a row, or None if constraints forbid it."""
        ...


def dimension_of(space: ProposalSpace) -> int:
    """Return the number of hyperparameters."""
    return len(space.frame.bounded) + len(space.frame.counts)


class FlatProposals:
    """Encoder between rows and configurations of a flat JSON search space, for BOHB.

    Args:
        search_space: as the experiment gives it.

    Raises:
        ValueError: the space is malformed, nested, or uses a reserved name.
    """

    def __init__(self, search_space: JsonValue) -> None:
        self._space = flat_space(search_space, "BOHB")
        self._levels = levels_of(self._space)
        (level,) = self._levels
        self.frame = Frame(
            np.array([column.bounded for column in level.numeric], dtype=bool),
            BELL_WIDTH,
            np.array([len(column.domain.options) for column in level.choices], dtype=np.int64),
        )

    def draw(self, rng: Random) -> dict[str, JsonValue]:
        """Return a random configuration, drawn from the prior, that the space allows."""
        return self._space.draw(rng)

    def row(self, configuration: JsonValue) -> Row:
        """Return a configuration's row; raise ValueError if it lies outside the space."""
        (row,) = rows_of(self._levels, place(self._space, configuration))
        return row

    def configuration(self, row: Row) -> dict[str, JsonValue] | None:
        """Return the configuration nearest to a row, or None if constraints forbid it."""
        configuration = configuration_of(self._levels, {0: row})
        return configuration if self._space.allows(configuration) else None
