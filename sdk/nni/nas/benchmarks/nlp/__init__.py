"""Documented import path for `nni.nas.benchmark.nlp.query` and `nni.nas.benchmark.nlp.records`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.nas.benchmark.nlp.query import query_nlp_trial_stats
from nni.nas.benchmark.nlp.records import NlpIntermediateStats, NlpTrialConfig, NlpTrialStats

__all__ = ["NlpIntermediateStats", "NlpTrialConfig", "NlpTrialStats", "query_nlp_trial_stats"]
