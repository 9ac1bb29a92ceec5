"""Documented import path for `nni.hpo.tuners.pbt`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.hpo.tuners.pbt import PBTTuner

__all__ = ["PBTTuner"]
