"""Loader of a training that continues in the middle of an epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sized
from typing import Any, Final

from nni.nas.strategy.oneshot.random_states import random_states, restore_random_states

_POSITION: Final = "position"
_BEGIN: Final = "begin"


class ResumableLoader:
    """Loader with the state that Lightning saves: its position, and the random states at its begin.

    After `load_state_dict` the next pass draws the same order as the interrupted one, leaves out
    the batches that it had, and then goes on. A pass begins at its first batch.

    Args:
        loader: sized iterable of batches.

    Examples:
        >>> loader = ResumableLoader([1, 2, 3])
        >>> first = iter(loader)
        >>> next(first), next(first)
        (1, 2)
        >>> again = ResumableLoader([1, 2, 3])
        >>> again.load_state_dict(loader.state_dict())
        >>> list(again)
        [3]
    """

    def __init__(self, loader: Any) -> None:  # noqa: ANN401 - any sized iterable
        self.loader = loader
        self._position = 0
        self._begin: Mapping[str, Any] | None = None
        self._resumes = False

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        if self._resumes and self._begin is not None:
            self._resumes = False
            batches = self._rest(self._position, self._begin)
        else:
            self._begin, self._position = random_states(), 0
            batches = iter(self.loader)
        for batch in batches:
            self._position += 1
            yield batch

    def _rest(self, position: int, begin: Mapping[str, Any]) -> Iterator[Any]:
        """Return the batches after a position of a pass that began with some random states."""
        present = random_states()
        restore_random_states(begin)
        batches: Iterator[Any] = iter(self.loader)
        for _ in range(position):
            next(batches, None)
        restore_random_states(present)
        return batches

    def end_pass(self) -> None:
        """Forget the current pass: the next one begins anew."""
        self._begin, self._position, self._resumes = None, 0, False

    def state_dict(self) -> dict[str, Any]:
        """Return the position in the current pass, and the random states at its begin.

        Returns:
            Numbers and tensors; without a present pass its begin is None.
        """
        return {_POSITION: self._position, _BEGIN: self._begin}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Let the next pass repeat a saved one's order, without the batches before its position.

        Args:
            state_dict: what `state_dict` returned.
        """
        self._position, self._begin = state_dict[_POSITION], state_dict[_BEGIN]
        self._resumes = self._begin is not None


class ResumableLoaders:
    """All loaders of one training, made resumable where they have a size.

    Attributes:
        complete: whether the training can go on in the middle of an epoch: all have a size, and
            there is one.
    """

    def __init__(self) -> None:
        self.complete = False
        self._loaders: list[ResumableLoader] = []

    def wrap(self, loaders: Any) -> Any:  # noqa: ANN401 - as `Trainer.fit` takes them
        """Return loaders in the same form, resumable, but those without a size as they are.

        Args:
            loaders: a loader, or a dict or list of them.

        Returns:
            The same form; what has no size stays as it is.
        """
        self._loaders.clear()
        self.complete = True
        wrapped = self._wrapped(loaders)
        self.complete = self.complete and bool(self._loaders)
        return wrapped

    def _wrapped(self, loaders: Any) -> Any:  # noqa: ANN401 - as above
        if isinstance(loaders, dict):
            return {name: self._wrapped(one) for name, one in loaders.items()}
        if isinstance(loaders, list | tuple):
            return type(loaders)(self._wrapped(one) for one in loaders)
        if not _has_size(loaders):
            self.complete = False
            return loaders
        made = ResumableLoader(loaders)
        self._loaders.append(made)
        return made

    def end_pass(self) -> None:
        """Reset each loader: its next pass starts from the beginning."""
        for loader in self._loaders:
            loader.end_pass()


def _has_size(loader: Any) -> bool:  # noqa: ANN401 - any iterable
    """Return whether a loader knows its size; one of an iterable data set does not."""
    if not isinstance(loader, Sized) or hasattr(loader, "flattened"):
        return False  # a `CombinedLoader` of Lightning has its own rules
    try:
        len(loader)
    except TypeError:
        return False
    return True
