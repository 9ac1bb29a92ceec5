"""Documented import path for `nni.hpo.tuners.hyperopt_tuner`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.hpo.tuners.hyperopt_tuner import HyperoptTuner

__all__ = ["HyperoptTuner"]
