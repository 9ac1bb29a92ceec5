"""Documented import path for `nni.hpo.tuners.batch`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.hpo.tuners.batch import BatchTuner

__all__ = ["BatchTuner"]
