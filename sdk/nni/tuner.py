"""Documented import path for `nni.errors` and `nni.hpo.base`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.errors import NoMoreTrialError
from nni.hpo.base import Tuner

__all__ = ["NoMoreTrialError", "Tuner"]
