"""Samples that a user imports, or that a resumed experiment replays."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass

from nni.hpo.json_value import JsonValue

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Sample:
    """One configuration and what it was found to be worth."""

    parameter: JsonValue
    value: JsonValue
    """A number, a dict with `default`, or anything else that the user wrote; None if missing."""


def samples(data: object) -> Iterator[Sample]:
    """Yield the well-formed samples of `data`; others are logged and skipped.

    Args:
        data: list of dicts with `parameter` and `value`.
    """
    if not isinstance(data, list | tuple):
        _logger.warning("imported data must be a list of samples, got %.200r", data)
        return
    for item in data:
        if isinstance(item, dict) and "parameter" in item:
            yield Sample(item["parameter"], item.get("value"))
        else:
            _logger.warning("an imported sample must be a dict with 'parameter', got %.200r", item)
