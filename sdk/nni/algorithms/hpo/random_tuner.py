"""Documented import path for `nni.hpo.tuners.random_search`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.hpo.tuners.random_search import RandomTuner

__all__ = ["RandomTuner"]
