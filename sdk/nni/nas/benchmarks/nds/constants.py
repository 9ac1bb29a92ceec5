"""Documented import path for `nni.nas.benchmark.nds.constants`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

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
    "NONE",
    "SEP_CONV_3X3",
    "SEP_CONV_5X5",
    "SEP_CONV_7X7",
    "SKIP_CONNECT",
]
