"""Metrics of one executable model: intermediate ones in order, and the final one."""

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, Final

__all__ = ["Metrics"]

_DEFAULT: Final = "default"


class Metrics:
    """Intermediate and final metrics that one model reported, checked to be numbers if strict.

    A strict one holds floats: a dict gives its value `default`.

    Args:
        strict: whether metrics must be numbers, or dicts with a number at `default`.

    Examples:
        >>> metrics = Metrics()
        >>> metrics.add_intermediate(1)
        >>> metrics.final = {"default": 0.5, "latency": 3}
        >>> metrics
        Metrics(intermediates=[1.0], final=0.5)
    """

    def __init__(self, strict: bool = True) -> None:  # noqa: FBT001, FBT002 - as specified
        self._strict = strict
        self._intermediates: list[Any] = []
        self._final: Any = None

    @property
    def strict(self) -> bool:
        """Whether metrics must be numbers, or dicts with a number at `default`."""
        return self._strict

    @property
    def intermediates(self) -> list[Any]:
        """Intermediate metrics in the order of their reports; a copy."""
        return list(self._intermediates)

    @property
    def final(self) -> Any:  # noqa: ANN401 - of any type if not strict
        """Final metric, None while there is none."""
        return self._final

    @final.setter
    def final(self, value: object) -> None:
        self._final = self._checked(value)

    def add_intermediate(self, metric: object) -> None:
        """Append an intermediate metric; if strict, convert it to a float or raise ValueError.

        Args:
            metric: number, or a dict with a number at `default`; anything if not strict.

        Raises:
            ValueError: a strict object is given something else.
        """
        self._intermediates.append(self._checked(metric))

    def clear(self) -> None:
        """Remove all metrics, as before another evaluation."""
        self._intermediates.clear()
        self._final = None

    def _checked(self, metric: object) -> object:
        if not self._strict:
            return metric
        number = metric
        if isinstance(metric, Mapping):
            if _DEFAULT not in metric:
                raise ValueError(
                    f"a metric that is a dict must have the key {_DEFAULT!r}, got {dict(metric)!r}"
                )
            number = metric[_DEFAULT]
        if not isinstance(number, Real):
            number = _scalar(number)
        if number is None:
            raise ValueError(
                f"a metric must be a number, or a dict with a number at {_DEFAULT!r}, got "
                f"{metric!r}"
            )
        return float(number)  # type: ignore[arg-type]  # a real number

    def _dump(self) -> dict[str, Any]:
        return {
            "strict": self._strict,
            "intermediates": list(self._intermediates),
            "final": self._final,
        }

    @classmethod
    def _load(cls, *, strict: bool, intermediates: Sequence[Any], final: object) -> "Metrics":
        metrics = cls(strict=strict)
        metrics._intermediates = list(intermediates)
        metrics._final = final
        return metrics

    def __eq__(self, other: object) -> bool:
        """Return whether another object holds the same metrics."""
        return isinstance(other, Metrics) and self._dump() == other._dump()

    __hash__ = None  # type: ignore[assignment]  # its content changes

    def __repr__(self) -> str:
        return f"Metrics(intermediates={self._intermediates!r}, final={self._final!r})"


def _scalar(value: object) -> object:
    """Return the number in a scalar tensor or array; None if the value is none of these."""
    item = getattr(value, "item", None)
    if item is None or getattr(value, "ndim", None) != 0:
        return None
    number = item()
    return number if isinstance(number, Real) else None
