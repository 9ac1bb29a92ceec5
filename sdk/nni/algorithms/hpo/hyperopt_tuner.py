"""Documented spelling of TPE, Random and Anneal; home is `nni.hpo.tuners.hyperopt_tuner`."""

from nni.hpo.tuners.hyperopt_tuner import HyperoptTuner

__all__ = ["HyperoptTuner"]
