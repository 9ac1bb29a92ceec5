"""Documented import path for `nni.hpo.assessors.curve_fitting`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.hpo.assessors.curve_fitting import CurvefittingAssessor

__all__ = ["CurvefittingAssessor"]
