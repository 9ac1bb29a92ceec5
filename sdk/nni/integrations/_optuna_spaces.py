"""Conversion between Optuna's distributions and search spaces."""

import math
from collections.abc import Iterator, Mapping
from statistics import NormalDist
from typing import Any, Final

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import Trial

from nni.hpo.space.domains import (
    Branch,
    ChoiceDomain,
    Domain,
    IntegerDomain,
    NormalDomain,
    Parameter,
    Space,
    canonical_json,
)

_MOST_STEPS: Final = 1000
"""Most values of a range with steps that becomes a choice of them."""
_TAILS: Final = 8.0
"""Standard deviations at which the range of a normal distribution ends."""
_SMALLEST_QUANTILE: Final = 1e-9


def entry_of(name: str, distribution: BaseDistribution) -> dict[str, Any]:
    """Return the search-space entry of an Optuna distribution; ValueError: it has no equivalent.

    Args:
        name: of the parameter, for errors.
        distribution: to convert.

    Raises:
        ValueError: it has no equivalent: more than 1,000 steps that are no multiples.
    """
    if isinstance(distribution, CategoricalDistribution):
        return {"_type": "choice", "_value": list(distribution.choices)}
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    low, high, step = distribution.low, distribution.high, distribution.step
    if low == high:
        return {"_type": "choice", "_value": [low]}
    if isinstance(distribution, IntDistribution):
        if distribution.log:
            return {"_type": "qloguniform", "_value": [low, high, 1]}
        if step == 1:
            return {"_type": "randint", "_value": [low, high + 1]}
    if step is None:
        return {"_type": "loguniform" if distribution.log else "uniform", "_value": [low, high]}
    return _stepped_entry(name, low, high, step)


def _stepped_entry(name: str, low: float, high: float, step: float) -> dict[str, Any]:
    count = round((high - low) / step)
    if low == round(low / step) * step:
        return {"_type": "quniform", "_value": [low, high, step]}
    if count >= _MOST_STEPS:
        raise ValueError(
            f"parameter {name!r} must have at most {_MOST_STEPS} steps, or begin at a multiple of "
            f"its step; got [{low}, {high}] in steps of {step}"
        )
    return {"_type": "choice", "_value": [low + number * step for number in range(count + 1)]}


def value_of(distribution: BaseDistribution, value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return a parameter of `entry_of` as Optuna has it: integers are whole, steps exact."""
    if isinstance(distribution, IntDistribution):
        return int(value)
    if isinstance(distribution, FloatDistribution) and distribution.step is not None:
        steps = round((value - distribution.low) / distribution.step)
        return distribution.low + steps * distribution.step
    return value


def suggested(trial: Trial, space: Space) -> dict[str, Any]:
    """Return a configuration of a space, whose values a trial of Optuna suggests.

    Args:
        trial: asked for a parameter for each active one of the space, under its path.
        space: of the configuration.
    """
    return {one.key: _suggested(trial, one.path, one.domain) for one in space.parameters}


def _suggested(trial: Trial, path: str, domain: Domain) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(domain, ChoiceDomain):
        option = domain.options[trial.suggest_categorical(path, range(len(domain.options)))]
        if isinstance(option, Branch):
            return {"_name": option.name, **suggested(trial, option.space)}
        return option
    if isinstance(domain, IntegerDomain):
        return trial.suggest_int(path, domain.lower, domain.upper - 1)
    if isinstance(domain, NormalDomain):
        quantile = trial.suggest_float(path, _SMALLEST_QUANTILE, 1 - _SMALLEST_QUANTILE)
        return domain.from_normal(NormalDist(domain.mu, domain.sigma).inv_cdf(quantile))
    return domain.snap(trial.suggest_float(path, domain.low, domain.high, log=domain.log))


def searched(
    space: Space, configuration: Mapping[str, Any]
) -> Iterator[tuple[str, Any, BaseDistribution]]:
    """Yield path, value in the scale of `suggested`, and distribution, of each active parameter.

    Raises:
        ValueError: the configuration lies outside the space.
    """
    for parameter, value in _active(space, configuration):
        path, domain = parameter.path, parameter.domain
        if isinstance(domain, ChoiceDomain):
            choices = CategoricalDistribution(range(len(domain.options)))
            yield path, domain.position(value), choices
        elif isinstance(domain, NormalDomain):
            number = domain.check(value)
            normal = NormalDist(domain.mu, domain.sigma)
            raw = number if not domain.log else _logarithm(number)
            quantile = min(max(normal.cdf(raw), _SMALLEST_QUANTILE), 1 - _SMALLEST_QUANTILE)
            yield path, quantile, FloatDistribution(_SMALLEST_QUANTILE, 1 - _SMALLEST_QUANTILE)
        else:
            yield path, domain.check(value), _range(domain)


def shown(
    space: Space, configuration: Mapping[str, Any]
) -> Iterator[tuple[str, Any, BaseDistribution]]:
    """Yield path, value and distribution of each active parameter, as people read them.

    Options are themselves, or their names or JSON texts where Optuna has none of their kind.

    Raises:
        ValueError: the configuration lies outside the space.
    """
    for parameter, value in _active(space, configuration):
        path, domain = parameter.path, parameter.domain
        if isinstance(domain, ChoiceDomain):
            options = [_plain(option) for option in domain.options]
            yield path, options[domain.position(value)], CategoricalDistribution(options)
        elif isinstance(domain, NormalDomain):
            number = domain.check(value)
            bounds = [
                domain.from_normal(domain.mu + tail * domain.sigma) for tail in (-_TAILS, _TAILS)
            ]
            yield path, number, FloatDistribution(min(number, *bounds), max(number, *bounds))
        else:
            yield path, domain.check(value), _range(domain)


def _active(space: Space, configuration: Mapping[str, Any]) -> Iterator[tuple[Parameter, Any]]:
    """Yield the active parameters of a configuration with their values, those of branches too."""
    for parameter in space.parameters:
        if parameter.key not in configuration:
            raise ValueError(f"parameter {parameter.path!r} must have a value, got none")
        value = configuration[parameter.key]
        yield parameter, value
        if isinstance(parameter.domain, ChoiceDomain):
            option = parameter.domain.options[parameter.domain.position(value)]
            if isinstance(option, Branch):
                yield from _active(option.space, value)


def _range(domain: Domain) -> BaseDistribution:
    if isinstance(domain, IntegerDomain):
        return IntDistribution(domain.lower, domain.upper - 1)
    assert not isinstance(domain, ChoiceDomain | NormalDomain)
    return FloatDistribution(domain.low, domain.high, log=domain.log)


def _plain(option: object) -> Any:  # noqa: ANN401 - a plain value
    if isinstance(option, Branch):
        return option.name
    if option is None or isinstance(option, bool | int | float | str):
        return option
    return canonical_json(option)


def _logarithm(number: float) -> float:
    return math.log(number) if number > 0 else -math.inf
