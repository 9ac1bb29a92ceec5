"""Reader of the key `_prior` of a parameter in a search space."""

import math
import sys
from collections.abc import Mapping
from typing import Final

from nni.hpo.space.domains import Branch, ChoiceDomain, Domain, NormalDomain
from nni.hpo.space.user_priors import (
    DEVIATIONS,
    ODDS,
    PRIOR_KEY,
    NumberPrior,
    OptionPrior,
    UserPrior,
    option_prior,
)

_VALUE: Final = "value"
_CONFIDENCE: Final = "confidence"
_WEIGHTS: Final = "weights"
_USUAL: Final = "medium"
_LARGEST: Final = sys.float_info.max

_FORM_OF_NUMBER: Final = "a number, or {'value': number, 'confidence': 'low', 'medium' or 'high'}"
_FORM_OF_CHOICE: Final = (
    "{'value': option, 'confidence': 'low', 'medium' or 'high'}, or {'weights': [...]}"
)


def read_prior(kind: str, domain: Domain, given: object) -> UserPrior:
    """Return the user prior of a parameter; ValueError, without the parameter's name, if malformed.

    Args:
        kind: `_type` of the parameter.
        domain: of the parameter.
        given: value of its key `_prior`.

    Raises:
        ValueError: a rule is broken; the text says which, the value and the remedy.
    """
    if isinstance(domain, NormalDomain):
        raise ValueError(  # noqa: TRY004 - one type for all faults of an input
            f"{PRIOR_KEY} is for bounded ranges and choices, got {given!r:.200}; the distribution "
            f"of {kind} is a prior itself: change mu and sigma"
        )
    if isinstance(domain, ChoiceDomain):
        return _of_choice(domain, given)
    fields = {_VALUE: given} if _is_number(given) else _fields(given, {_VALUE}, _FORM_OF_NUMBER)
    value = _as_number(fields[_VALUE])
    deviation = DEVIATIONS[_confidence(fields)]
    try:
        centre = domain.share_of(domain.check(value))
    except ValueError as error:
        raise ValueError(
            f"{PRIOR_KEY}: value {error}; give one in the range, or widen it"
        ) from None
    return NumberPrior(centre, deviation)


def _of_choice(domain: ChoiceDomain, given: object) -> OptionPrior:
    if isinstance(given, Mapping) and set(given) == {_WEIGHTS}:
        return option_prior(_weights(given[_WEIGHTS], len(domain.options)))
    fields = _fields(given, {_VALUE}, _FORM_OF_CHOICE)
    odds = ODDS[_confidence(fields)]
    position = _position(domain, fields[_VALUE])
    return option_prior([odds if at == position else 1.0 for at in range(len(domain.options))])


def _position(domain: ChoiceDomain, value: object) -> int:
    """Return the position of an option; of a branch by its `_name`."""
    for at, option in enumerate(domain.options):
        if isinstance(option, Branch) and option.name == value:
            return at
    try:
        return domain.position(value)
    except ValueError as error:
        raise ValueError(f"{PRIOR_KEY}: value {error}; give one of the options") from None


def _fields(given: object, needed: set[str], form: str) -> Mapping[str, object]:
    allowed = needed | {_CONFIDENCE}
    if not isinstance(given, Mapping) or not needed <= set(given) <= allowed:
        raise ValueError(f"{PRIOR_KEY} must be {form}; got {given!r:.200}")
    return given


def _confidence(fields: Mapping[str, object]) -> str:
    given = fields.get(_CONFIDENCE, _USUAL)
    if not isinstance(given, str) or given not in DEVIATIONS:
        raise ValueError(
            f"{PRIOR_KEY}: confidence must be one of {', '.join(DEVIATIONS)}; got {given!r:.200}; "
            f"leave it out for {_USUAL}"
        )
    return given


def _weights(given: object, count: int) -> list[float]:
    if not isinstance(given, list | tuple) or len(given) != count:
        raise ValueError(
            f"{PRIOR_KEY}: weights must be a list of {count} numbers, one for each option in "
            f"order; got {given!r:.200}"
        )
    numbers = [
        float(one)
        for one in map(_as_number, given)
        if isinstance(one, int | float) and not isinstance(one, bool) and 0 <= one <= _LARGEST
    ]
    if len(numbers) < count or not 0 < sum(numbers) < math.inf:
        raise ValueError(
            f"{PRIOR_KEY}: weights must be finite numbers >= 0, one of them > 0; got {given!r:.200}"
        )
    return numbers


def _is_number(value: object) -> bool:
    number = _as_number(value)
    return isinstance(number, int | float) and not isinstance(number, bool)


def _as_number(value: object) -> object:
    """Return the number that a text holds, as YAML 1.1 leaves 1e-5 a text; others as they are."""
    if not isinstance(value, str):
        return value
    try:
        return float(value)
    except ValueError:
        return value
