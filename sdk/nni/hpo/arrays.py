"""Type aliases of the numpy arrays that numeric modules exchange.

A module of its own, so that modules without arrays do not import numpy.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
