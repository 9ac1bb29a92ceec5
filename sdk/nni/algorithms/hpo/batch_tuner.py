"""Documented spelling of the batch tuner; its home is `nni.hpo.tuners.batch`."""

from nni.hpo.tuners.batch import BatchTuner

__all__ = ["BatchTuner"]
