"""Names of the edges and data sets of NAS-Bench-201."""

from typing import Final

NONE: Final = "none"
SKIP_CONNECT: Final = "skip_connect"
CONV_1X1: Final = "conv_1x1"
CONV_3X3: Final = "conv_3x3"
AVG_POOL_3X3: Final = "avg_pool_3x3"

PRIMITIVES: Final = (NONE, SKIP_CONNECT, CONV_1X1, CONV_3X3, AVG_POOL_3X3)
"""Operations that an edge chooses from."""
EDGES: Final = ("0_1", "0_2", "1_2", "0_3", "1_3", "2_3")
"""Edges of the cell, from the lower to the higher node."""
DATASETS: Final = ("cifar10-valid", "cifar10", "cifar100", "imagenet16-120")
"""Data sets of the trials."""
