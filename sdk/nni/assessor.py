"""Documented import path for `nni.hpo.base`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.hpo.base import Assessor, AssessResult

__all__ = ["AssessResult", "Assessor"]
