"""Proposing where a Gaussian process expects the most: what `auto` and GPTuner are made of."""
