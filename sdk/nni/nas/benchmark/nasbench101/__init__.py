"""NAS-Bench-101: records, query, and graphs."""

from nni.nas.benchmark.nasbench101.constants import (
    CONV1X1_BN_RELU,
    CONV3X3_BN_RELU,
    INPUT,
    MAXPOOL3X3,
    OUTPUT,
)
from nni.nas.benchmark.nasbench101.query import query_nb101_trial_stats
from nni.nas.benchmark.nasbench101.records import (
    NB101_SCHEMA,
    Nb101IntermediateStats,
    Nb101TrialConfig,
    Nb101TrialStats,
)

__all__ = [
    "CONV1X1_BN_RELU",
    "CONV3X3_BN_RELU",
    "INPUT",
    "MAXPOOL3X3",
    "NB101_SCHEMA",
    "OUTPUT",
    "Nb101IntermediateStats",
    "Nb101TrialConfig",
    "Nb101TrialStats",
    "query_nb101_trial_stats",
]
