"""Documented import path for `nni.hpo.advisors.bohb`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.hpo.advisors.bohb import BOHB

__all__ = ["BOHB"]
