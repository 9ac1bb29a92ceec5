"""NLP benchmark: records and query."""

from nni.nas.benchmark.nlp.query import query_nlp_trial_stats
from nni.nas.benchmark.nlp.records import (
    NLP_SCHEMA,
    NlpIntermediateStats,
    NlpTrialConfig,
    NlpTrialStats,
)

__all__ = [
    "NLP_SCHEMA",
    "NlpIntermediateStats",
    "NlpTrialConfig",
    "NlpTrialStats",
    "query_nlp_trial_stats",
]
