"""Sweeps of Hydra's override syntax as a search space, and configurations as overrides."""

from collections.abc import Mapping, Sequence
from typing import Any

from hydra.core.override_parser.types import IntervalSweep, Override, RangeSweep

_LOG = "log"
"""Tag of an interval on a logarithmic scale."""


class SweptOverrides:
    """Overrides of a command line: sweeps as a search space, the others fixed.

    Args:
        overrides: as Hydra's parser returns them; of two with one key the later one counts.

    Raises:
        ValueError: none of them is a sweep.
    """

    def __init__(self, overrides: Sequence[Override]) -> None:
        self._entries: dict[str, dict[str, Any]] = {}
        self._options: dict[str, list[str]] = {}
        self._fixed: dict[str, str] = {}
        for override in overrides:
            key = override.get_key_element()
            for known in (self._entries, self._options, self._fixed):
                known.pop(key, None)
            if override.is_sweep_override():
                self._add_sweep(key, override)
            else:
                self._fixed[key] = override.get_value_element_as_str()
        if not self._entries:
            raise ValueError(
                "at least one override must be a sweep, such as rate=interval(0.001,1) or "
                "depth=choice(1,2,3); got none"
            )

    def search_space(self) -> dict[str, Any]:
        """Return the search space in JSON, by the keys of the overrides."""
        return dict(self._entries)

    def values(self, configuration: Mapping[str, Any]) -> dict[str, str]:
        """Return the swept values of a configuration, as texts in the syntax of overrides."""
        return {key: self._text(key, value) for key, value in configuration.items()}

    def job(self, configuration: Mapping[str, Any]) -> list[str]:
        """Return the overrides of the job for a configuration of the search space."""
        values = {**self._fixed, **self.values(configuration)}
        return [f"{key}={value}" for key, value in values.items()]

    def _add_sweep(self, key: str, override: Override) -> None:
        sweep = override.value()
        if isinstance(sweep, IntervalSweep):
            self._entries[key] = _interval_entry(key, sweep)
        elif isinstance(sweep, RangeSweep) and _is_of_integers(sweep):
            self._entries[key] = {"_type": "randint", "_value": [sweep.start, sweep.stop]}
        else:
            self._options[key] = list(override.sweep_string_iterator())
            positions = list(range(len(self._options[key])))
            self._entries[key] = {"_type": "choice", "_value": positions}

    def _text(self, key: str, value: Any) -> str:  # noqa: ANN401 - a number
        if key in self._options:
            return self._options[key][int(value)]
        kind = self._entries[key]["_type"]
        return str(int(value)) if kind in {"randint", "qloguniform"} else repr(float(value))


def _interval_entry(key: str, sweep: IntervalSweep) -> dict[str, Any]:
    start, end = sweep.start, sweep.end
    unknown = sorted(sweep.tags - {_LOG})
    if unknown:
        raise ValueError(f"{key} must have no other tag than 'log', got {', '.join(unknown)}")
    assert start is not None
    assert end is not None
    is_log = _LOG in sweep.tags
    if isinstance(start, int) and isinstance(end, int):  # of int(interval(...)), ends included
        if is_log:
            return {"_type": "qloguniform", "_value": [start, end, 1]}
        return {"_type": "randint", "_value": [start, end + 1]}
    return {"_type": "loguniform" if is_log else "uniform", "_value": [start, end]}


def _is_of_integers(sweep: RangeSweep) -> bool:
    ends = isinstance(sweep.start, int) and isinstance(sweep.stop, int)
    return ends and sweep.step == 1 and not sweep.shuffle
