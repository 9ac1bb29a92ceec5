"""States of an executable model, from its creation to its last metric."""

from enum import StrEnum

__all__ = ["ModelStatus"]


class ModelStatus(StrEnum):
    """State of an executable model; a string, so that it can be written as JSON.

    A space is `Initialized`; its frozen copies begin as `Frozen`, and a strategy or an engine sets
    the further states.

    Examples:
        >>> ModelStatus.Trained.completed(), ModelStatus.Mutating.frozen()
        (True, False)
    """

    Initialized = "initialized"
    """A space: no sample was chosen."""
    Mutating = "mutating"
    """A mutator is changing the model."""
    Frozen = "frozen"
    """The architecture is fixed, and no evaluation has begun."""
    Training = "training"
    """An evaluation runs."""
    Trained = "trained"
    """The evaluation ended as it should."""
    Failed = "failed"
    """The evaluation raised an error."""
    Interrupted = "interrupted"
    """The evaluation was stopped from outside."""
    Invalid = "invalid"
    """The architecture was refused before its evaluation, by a filter for example."""
    Retrying = "retrying"
    """The evaluation failed, and another one follows."""

    def frozen(self) -> bool:
        """Return whether the architecture can no longer change.

        Returns:
            True for all states but `Initialized` and `Mutating`.
        """
        return self not in {ModelStatus.Initialized, ModelStatus.Mutating}

    def completed(self) -> bool:
        """Return whether no further metric is to be expected.

        Returns:
            True for `Trained`, `Failed`, `Interrupted` and `Invalid`.
        """
        return self in {
            ModelStatus.Trained,
            ModelStatus.Failed,
            ModelStatus.Interrupted,
            ModelStatus.Invalid,
        }
