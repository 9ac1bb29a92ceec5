"""Documented import path for `nni.hpo.tuners.grid_search`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.hpo.tuners.grid_search import GridSearchTuner

__all__ = ["GridSearchTuner"]
