"""NDS: records and query."""

from nni.nas.benchmark.nds import constants
from nni.nas.benchmark.nds.constants import (
    AVG_POOL_3X3,
    CONV_1X1,
    CONV_3X1_1X3,
    CONV_3X3,
    CONV_7X1_1X7,
    DIL_CONV_3X3,
    DIL_CONV_5X5,
    DIL_SEP_CONV_3X3,
    MAX_POOL_3X3,
    MAX_POOL_5X5,
    MAX_POOL_7X7,
    NONE,
    SEP_CONV_3X3,
    SEP_CONV_5X5,
    SEP_CONV_7X7,
    SKIP_CONNECT,
)
from nni.nas.benchmark.nds.query import query_nds_trial_stats
from nni.nas.benchmark.nds.records import (
    NDS_SCHEMA,
    NdsIntermediateStats,
    NdsTrialConfig,
    NdsTrialStats,
)

__all__ = [
    "AVG_POOL_3X3",
    "CONV_1X1",
    "CONV_3X1_1X3",
    "CONV_3X3",
    "CONV_7X1_1X7",
    "DIL_CONV_3X3",
    "DIL_CONV_5X5",
    "DIL_SEP_CONV_3X3",
    "MAX_POOL_3X3",
    "MAX_POOL_5X5",
    "MAX_POOL_7X7",
    "NDS_SCHEMA",
    "NONE",
    "SEP_CONV_3X3",
    "SEP_CONV_5X5",
    "SEP_CONV_7X7",
    "SKIP_CONNECT",
    "NdsIntermediateStats",
    "NdsTrialConfig",
    "NdsTrialStats",
    "constants",
    "query_nds_trial_stats",
]
