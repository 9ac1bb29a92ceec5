"""Distributions of scikit-learn's searches as search spaces, and configurations as parameters."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nni.hpo.space.samplings import Choice, Range

SPACE: Final = "space"
"""Key of the choice between several dicts of distributions."""


class ParameterDistributions:
    """Converter of `NNISearchCV`'s distributions to a search space, and of its points to values.

    Options are positions in the space, since they may be any objects, such as estimators.

    Args:
        distributions: dict of parameter to distribution; or a list of such dicts, one of which a
            configuration uses.

    Raises:
        TypeError: it is neither, or a distribution has none of the forms.
        ValueError: there is no parameter, or an option of a sequence.
    """

    def __init__(self, distributions: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        if isinstance(distributions, Mapping):
            self._branches = [distributions]
        elif isinstance(distributions, list | tuple):
            self._branches = list(distributions)
        else:
            raise TypeError(
                f"param_distributions must be a dict or a list of dicts, got {distributions!r:.80}"
            )
        self._several = not isinstance(distributions, Mapping)
        if not self._branches:
            raise ValueError("param_distributions must hold at least one dict, got an empty list")
        self._entries = [_entries(branch) for branch in self._branches]

    def search_space(self) -> dict[str, Any]:
        """Return the search space: options as positions, several dicts as the choice `space`."""
        if not self._several:
            return self._entries[0]
        branches = [{"_name": str(i), **entries} for i, entries in enumerate(self._entries)]
        return {SPACE: {"_type": "choice", "_value": branches}}

    def parameters(self, configuration: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of the estimator for a configuration of the search space."""
        position = 0
        if self._several:
            configuration = configuration[SPACE]
            position = int(configuration["_name"])
        branch = self._branches[position]
        return {name: _value(branch[name], configuration[name]) for name in branch}


def _entries(branch: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(branch, Mapping):
        raise TypeError(f"param_distributions must hold dicts, got {branch!r:.80}")
    return {name: _entry(name, one) for name, one in branch.items()}


def _entry(name: str, distribution: Any) -> dict[str, Any]:  # noqa: ANN401 - of several libraries
    """Return a distribution's search-space entry: options as positions, scipy's as quantiles."""
    if isinstance(distribution, Range):
        return distribution.entry()
    options = _options(distribution)
    if options is not None:
        if not options:
            raise ValueError(f"parameter {name!r} must have at least one option, got none")
        return {"_type": "choice", "_value": list(range(len(options)))}
    if isinstance(distribution, Mapping) and "_type" in distribution:
        return dict(distribution)
    if hasattr(distribution, "ppf"):  # of scipy.stats: its quantiles are searched
        return {"_type": "uniform", "_value": [0, 1]}
    raise TypeError(
        f"parameter {name!r} must have a list of options, a sampling such as nni.hpo.Uniform(0, "
        "1), an entry of a search space or a distribution of scipy.stats, got "
        f"{distribution!r:.80}"
    )


def _options(distribution: Any) -> list[Any] | None:  # noqa: ANN401 - of several libraries
    """Return the options of a categorical distribution; None for one of numbers."""
    if isinstance(distribution, Choice):
        return list(distribution.options)
    if isinstance(distribution, Mapping):
        is_choice = distribution.get("_type") == "choice"
        return list(distribution["_value"]) if is_choice else None
    if isinstance(distribution, str) or hasattr(distribution, "ppf"):
        return None
    # Also arrays of numpy, whose elements become numbers of Python.
    if hasattr(distribution, "tolist"):
        return list(distribution.tolist())
    return list(distribution) if isinstance(distribution, Sequence) else None


def _value(distribution: Any, given: Any) -> Any:  # noqa: ANN401 - of several libraries
    """Return a parameter's value: the option at a position, the quantile, or the number itself."""
    options = _options(distribution)
    if options is not None:
        return options[given]
    if hasattr(distribution, "ppf"):
        value = distribution.ppf(given)
        return value.item() if hasattr(value, "item") else value
    return given
