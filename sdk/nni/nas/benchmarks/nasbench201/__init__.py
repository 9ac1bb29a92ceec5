"""Documented import path for `nni.nas.benchmark.nasbench201`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.nas.benchmark.nasbench201.constants import (
    AVG_POOL_3X3,
    CONV_1X1,
    CONV_3X3,
    NONE,
    PRIMITIVES,
    SKIP_CONNECT,
)
from nni.nas.benchmark.nasbench201.query import query_nb201_trial_stats
from nni.nas.benchmark.nasbench201.records import (
    Nb201IntermediateStats,
    Nb201TrialConfig,
    Nb201TrialStats,
)

__all__ = [
    "AVG_POOL_3X3",
    "CONV_1X1",
    "CONV_3X3",
    "NONE",
    "PRIMITIVES",
    "SKIP_CONNECT",
    "Nb201IntermediateStats",
    "Nb201TrialConfig",
    "Nb201TrialStats",
    "query_nb201_trial_stats",
]
