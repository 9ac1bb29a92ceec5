"""Documented import path for `nni.hpo.assessors.median_stop`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.hpo.assessors.median_stop import MedianstopAssessor

__all__ = ["MedianstopAssessor"]
