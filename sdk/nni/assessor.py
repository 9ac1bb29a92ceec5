"""Documented spelling of the contract for assessors; its home is `nni.hpo.base`."""

from nni.hpo.base import Assessor, AssessResult

__all__ = ["AssessResult", "Assessor"]
