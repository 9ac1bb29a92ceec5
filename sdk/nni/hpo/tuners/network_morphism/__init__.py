"""Search for neural architectures by network morphism; see `tuner`."""
