"""Contract of one-shot trainers of NNI 2.x: `BaseOneShotTrainer`."""

from abc import ABC, abstractmethod
from typing import Any


class BaseOneShotTrainer(ABC):
    """Base class of trainers of a network that holds all architectures.

    The constructor of a subclass may take any arguments. `RetiariiExperiment` calls `fit` of a
    trainer, and nothing else.
    """

    @abstractmethod
    def fit(self) -> None:
        """Train and search."""

    @abstractmethod
    def export(self) -> Any:  # noqa: ANN401 - a dict, of any form
        """Return the architecture that the search prefers.

        Returns:
            A dict by label, as `fixed_arch` takes it.
        """
