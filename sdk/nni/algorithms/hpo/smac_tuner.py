"""Documented spelling of SMAC; its home is `nni.hpo.tuners.smac`."""

from nni.hpo.tuners.smac import SMACTuner

__all__ = ["SMACTuner"]
