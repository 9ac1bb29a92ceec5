"""Documented spelling of Metis; its home is `nni.hpo.tuners.metis`."""

from nni.hpo.tuners.metis import MetisTuner

__all__ = ["MetisTuner"]
