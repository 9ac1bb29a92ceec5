"""Validation of search spaces."""

import logging
from collections.abc import Sequence

from nni.hpo.json_value import JsonValue
from nni.hpo.space.parser import ALL_TYPES, parse_space

_logger = logging.getLogger(__name__)


def validate_search_space(
    search_space: JsonValue,
    support_types: Sequence[str] | None = None,
    raise_exception: bool = False,  # noqa: FBT001, FBT002 - documented signature
) -> bool:
    """Return whether a search space is well formed; log, or on request raise, what is wrong.

    Args:
        search_space: what the user gave.
        support_types: the `_type`s that the tuner can handle; None for all.
        raise_exception: raise what is wrong instead of logging it.

    Raises:
        ValueError: it is not well formed, and `raise_exception` is true.
    """
    types = ALL_TYPES if support_types is None else tuple(support_types)
    try:
        parse_space(search_space, types=types)
    except ValueError as error:
        if raise_exception:
            raise
        _logger.error("%s", error)  # noqa: TRY400 - the text says it all
        return False
    return True
