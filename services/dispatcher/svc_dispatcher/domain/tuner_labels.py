"""Unique names of an experiment's successive tuners, under which their results are compared."""

from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True, slots=True)
class TunerLabels:
    """Unique names of the current tuner: a name that an earlier tuner used gets a number.

    A label is the name of a tuner, or its label in a list of several. It stays as it is unless an
    earlier tuner of the experiment has used it, as when TPE takes over from TPE of other arguments.
    """

    number: int = 1
    """Of the tuner in charge: 1 for the first one, one more at each hand-over."""
    earlier: frozenset[str] = frozenset()
    """Labels in the log of the tuners before it."""
    used: frozenset[str] = frozenset()
    """Labels in the log of the tuner in charge."""

    def noted(self, labels: frozenset[str]) -> "TunerLabels":
        """Return a copy that records these labels as used by the current tuner."""
        return self if labels <= self.used else replace(self, used=self.used | labels)

    def handed_over(self) -> "TunerLabels":
        """Return the next tuner's state: number + 1, all labels used so far marked as earlier."""
        return TunerLabels(self.number + 1, self.earlier | self.used)

    def distinct(self, label: str) -> str:
        """Return a label of the current tuner, with its number added if an earlier tuner used it.

        The same label has the same answer for as long as the tuner is in charge.
        """
        found, number = label, self.number
        while found in self.earlier:
            found, number = f"{label} (tuner {number})", number + 1
        return found


FIRST_TUNER: Final = TunerLabels()
"""Labels of an experiment that was not handed over."""
