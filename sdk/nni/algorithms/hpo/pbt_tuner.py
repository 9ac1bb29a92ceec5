"""Documented spelling of population based training; its home is `nni.hpo.tuners.pbt`."""

from nni.hpo.tuners.pbt import PBTTuner

__all__ = ["PBTTuner"]
