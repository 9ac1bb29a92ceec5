"""Helpers of strategies that sample: duplicates by content, and retries of failed draws."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, ParamSpec, TypeVar

from nni.mutable import SampleValidationError

_logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

RETRIES: Final = 500
"""Draws without an acceptable sample after which a space counts as exhausted."""

_HISTORY: Final = "dedup_history"


class DuplicationError(SampleValidationError):
    """Error: a sample was drawn before.

    Examples:
        >>> from nni.nas.strategy.utils import DuplicationError
        >>> issubclass(DuplicationError, ValueError)
        True
    """


class DeduplicationHelper:
    """Set of samples, compared by content.

    Args:
        raise_on_dup: whether `dedup` raises instead of returning false.

    Examples:
        >>> from nni.nas.strategy.utils import DeduplicationHelper
        >>> seen = DeduplicationHelper()
        >>> seen.dedup({"kernel": 3}), seen.dedup({"kernel": 3})
        (True, False)
    """

    def __init__(self, raise_on_dup: bool = False) -> None:  # noqa: FBT001, FBT002 - documented signature
        self._raises = raise_on_dup
        self._history: dict[str, None] = {}

    def dedup(self, sample: Mapping[str, Any]) -> bool:
        """Add a sample; return whether it is new, or raise for a duplicate if configured.

        Args:
            sample: label to value.

        Returns:
            True if it is new.

        Raises:
            DuplicationError: it is a duplicate, and `raise_on_dup` is set.
        """
        key = content_key(sample)
        if key in self._history:
            if self._raises:
                raise DuplicationError(f"the sample was drawn before: {dict(sample)!r:.200}")
            return False
        self._history[key] = None
        return True

    def remove(self, sample: Mapping[str, Any]) -> None:
        """Forget a sample, so that it may be drawn again; unknown ones are ignored.

        Args:
            sample: label to value.
        """
        self._history.pop(content_key(sample), None)

    def reset(self) -> None:
        """Forget all samples."""
        self._history.clear()

    def state_dict(self, without: Iterable[Mapping[str, Any]] = ()) -> dict[str, Any]:
        """Return keys of the seen samples, without the given ones.

        Args:
            without: samples to leave out, because their models have not ended.

        Returns:
            `dedup_history`: a list of keys.
        """
        left_out = {content_key(sample) for sample in without}
        return {_HISTORY: [key for key in list(self._history) if key not in left_out]}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the samples that were seen.

        Args:
            state_dict: what `state_dict` returned.
        """
        self._history = dict.fromkeys(state_dict[_HISTORY])


class RetrySamplingHelper:
    """Helper that repeats a draw until it succeeds, up to a limit.

    Args:
        retries: draws at most.
        exception_types: errors that mean another draw; others propagate.
        raise_last: whether the last error propagates; otherwise the result is None.

    Examples:
        >>> from nni.nas.strategy.utils import RetrySamplingHelper
        >>> draws = iter([0, 0, 4])
        >>> RetrySamplingHelper(5, ZeroDivisionError).retry(lambda: 8 // next(draws))
        2
    """

    def __init__(
        self,
        retries: int = RETRIES,
        exception_types: type[Exception] | tuple[type[Exception], ...] = (SampleValidationError,),
        raise_last: bool = False,  # noqa: FBT001, FBT002 - documented signature
    ) -> None:
        self._retries = retries
        self._exception_types = exception_types
        self._raise_last = raise_last

    def retry(self, func: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Call a function until it succeeds, up to a limit; then return None or raise.

        Args:
            func: draws once.
            *args: of the function.
            **kwargs: of the function.

        Returns:
            What the function returned; None after the last failure.
        """
        for attempt in range(1, self._retries + 1):
            try:
                return func(*args, **kwargs)
            except self._exception_types as error:
                if attempt == self._retries:
                    if self._raise_last:
                        raise
                    _logger.info("no new sample after %d draws; the last one: %s", attempt, error)
        return None


def content_key(sample: Mapping[str, Any]) -> str:
    """Return a text that is equal for equal samples; the order of labels does not count."""
    return json.dumps(_plain(sample), sort_keys=True)


def _plain(value: object) -> object:
    """Return the content of a value in JSON; other objects by the name of their type and `repr`."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Mapping():
            return {"map": sorted(([_plain(k), _plain(v)] for k, v in value.items()), key=repr)}
        case list():
            return [_plain(item) for item in value]
        case tuple():
            return {"tuple": [_plain(item) for item in value]}
        case type():
            return {"type": f"{value.__module__}.{value.__qualname__}"}
    return {f"{type(value).__module__}.{type(value).__qualname__}": repr(value)}
