"""Types that annotate the tuners and assessors of NNI 3.0, under their NNI 3.0 names.

A short module of its own since its path is documented: `from nni.typehint import SearchSpace`.
"""

from typing import Any, Literal, TypeAlias, TypedDict

__all__ = ["Literal", "Parameters", "SearchSpace", "TrialMetric", "TrialRecord", "TypedDict"]

Parameters: TypeAlias = dict[str, Any]
"""Configuration: value by hyperparameter."""

SearchSpace: TypeAlias = dict[str, Any]
"""Search space in its JSON form."""

TrialMetric: TypeAlias = float
"""Result of a trial."""

TrialRecord = TypedDict(  # noqa: UP013 - a class of this name is that of `nni.hpo.optimize`
    "TrialRecord", {"parameter": Parameters, "value": TrialMetric}
)
"""Sample that a tuner imports."""
