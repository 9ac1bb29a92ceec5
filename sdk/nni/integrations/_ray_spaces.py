"""Conversion of the domains of a Ray Tune configuration to a search space."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ray.tune.search.sample import (
    Categorical,
    Domain,
    Float,
    Integer,
    LogUniform,
    Normal,
    Quantized,
)

_GRID: Final = "grid_search"
"""Only key of the dict that `ray.tune.grid_search` returns."""


class RaySpace:
    """Search space of the domains in a configuration of Ray Tune, which may be nested.

    Parameters are named by their keys, joined with `/`. A choice is one of positions, since its
    values may be any objects.

    Args:
        config: what `Tuner` gets as `param_space`; other values than domains stay as they are.

    Raises:
        ValueError: there is no domain, or one that has no equivalent.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        found = dict(_domains(config, ()))
        self._paths = {"/".join(path): path for path in found}
        self._domains = {"/".join(path): domain for path, domain in found.items()}
        self.entries = {name: _entry(name, one) for name, one in self._domains.items()}
        """The search space in JSON."""
        if not self.entries:
            raise ValueError(
                "param_space must have at least one domain, such as tune.uniform(0, 1); got none"
            )

    def config(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the nested configuration for parameters of the search space."""
        nested: dict[str, Any] = {}
        for name, value in parameters.items():
            *folders, key = self._paths[name]
            inner = nested
            for folder in folders:
                inner = inner.setdefault(folder, {})
            inner[key] = _value(self._domains[name], value)
        return nested

    def parameters(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of a configuration, which may hold other values as well.

        Raises:
            ValueError: a parameter is missing, or is not one of the values of its choice.
        """
        found: dict[str, Any] = {}
        for name, path in self._paths.items():
            value: Any = config
            for key in path:
                if not isinstance(value, Mapping) or key not in value:
                    raise ValueError(f"the configuration must have {name!r}, got {config!r}")
                value = value[key]
            found[name] = _parameter(name, self._domains[name], value)
        return found


def _domains(
    config: Mapping[str, Any], prefix: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Domain]]:
    for key, value in config.items():
        path = (*prefix, str(key))
        if isinstance(value, Domain):
            yield path, value
        elif isinstance(value, Mapping):
            if set(value) == {_GRID}:
                raise ValueError(f"{'/'.join(path)} must be tune.choice(...), got tune.grid_search")
            yield from _domains(value, path)


def _entry(name: str, domain: Domain) -> dict[str, Any]:
    if domain.is_function():
        raise ValueError(f"{name} must be a domain with a range, got tune.sample_from")
    if isinstance(domain, Categorical):
        if any(isinstance(one, Domain) for one in domain.categories):
            raise ValueError(f"{name} must choose among values, got a domain inside tune.choice")
        return {"_type": "choice", "_value": list(range(len(domain.categories)))}
    sampler = domain.get_sampler()
    step = None
    if isinstance(sampler, Quantized):
        step, sampler = sampler.q, sampler.get_sampler()
    if isinstance(sampler, Normal):
        return _range("normal", sampler.mean, sampler.sd, step)
    assert isinstance(domain, Float | Integer)
    kind = "loguniform" if isinstance(sampler, LogUniform) else "uniform"
    low, high = domain.lower, domain.upper
    if isinstance(domain, Integer):
        if step is None:
            high -= 1  # the end of a plain range is left out, that of one with steps is not
            step = 1
        if step == 1 and kind == "uniform":
            return {"_type": "randint", "_value": [low, high + 1]}
    if low == high:
        return {"_type": "choice", "_value": [low]}
    return _range(kind, low, high, step)


def _range(kind: str, first: float, second: float, step: float | None) -> dict[str, Any]:
    if step is None:
        return {"_type": kind, "_value": [first, second]}
    return {"_type": f"q{kind}", "_value": [first, second, step]}


def _value(domain: Domain, value: Any) -> Any:  # noqa: ANN401 - any object
    if isinstance(domain, Categorical):
        return domain.categories[int(value)]
    return int(value) if isinstance(domain, Integer) else float(value)


def _parameter(name: str, domain: Domain, value: Any) -> Any:  # noqa: ANN401 - any object
    if not isinstance(domain, Categorical):
        return value
    for position, one in enumerate(domain.categories):
        if one is value or one == value:
            return position
    raise ValueError(f"{name} must be one of {list(domain.categories)!r}, got {value!r}")
