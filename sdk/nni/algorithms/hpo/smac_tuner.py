"""Documented import path for `nni.hpo.tuners.smac`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.hpo.tuners.smac import SMACTuner

__all__ = ["SMACTuner"]
