"""Documented import path for `nni.hpo.tuners.metis`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.hpo.tuners.metis import MetisTuner

__all__ = ["MetisTuner"]
