"""Bayesian optimisation with Gaussian processes, for `auto`, GPTuner, Metis, DNGO and SMAC."""
