"""Utilities for tuners: validate and flatten search spaces, deduplicate configurations."""

from nni.common.hpo_utils.deduplication import Deduplicator
from nni.common.hpo_utils.formatting import (
    FormattedParameters,
    FormattedSearchSpace,
    ParameterKey,
    ParameterSpec,
    deformat_parameters,
    format_parameters,
    format_search_space,
)
from nni.common.hpo_utils.space_validation import validate_search_space

__all__ = [
    "Deduplicator",
    "FormattedParameters",
    "FormattedSearchSpace",
    "ParameterKey",
    "ParameterSpec",
    "deformat_parameters",
    "format_parameters",
    "format_search_space",
    "validate_search_space",
]
