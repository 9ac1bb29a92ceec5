"""Documented spelling of TPE, Random and Anneal; their home is `nni.hpo.tuners.hyperopt_tuner`."""

from nni.hpo.tuners.hyperopt_tuner import HyperoptTuner

__all__ = ["HyperoptTuner"]
