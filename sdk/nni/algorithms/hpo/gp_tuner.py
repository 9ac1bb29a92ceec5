"""Documented spelling of the Gaussian process tuner; its home is `nni.hpo.tuners.gp`."""

from nni.hpo.tuners.gp import GPTuner

__all__ = ["GPTuner"]
