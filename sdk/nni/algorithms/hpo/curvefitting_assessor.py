"""Documented spelling of curve fitting; its home is `nni.hpo.assessors.curve_fitting`."""

from nni.hpo.assessors.curve_fitting import CurvefittingAssessor

__all__ = ["CurvefittingAssessor"]
