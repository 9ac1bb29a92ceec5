"""Names of the vertices of NAS-Bench-101."""

from typing import Final

INPUT: Final = "input"
OUTPUT: Final = "output"
CONV3X3_BN_RELU: Final = "conv3x3-bn-relu"
CONV1X1_BN_RELU: Final = "conv1x1-bn-relu"
MAXPOOL3X3: Final = "maxpool3x3"

LABELS: Final = {INPUT: -1, OUTPUT: -2, CONV3X3_BN_RELU: 0, CONV1X1_BN_RELU: 1, MAXPOOL3X3: 2}
"""Name to the number that the hash of a graph is made from."""
