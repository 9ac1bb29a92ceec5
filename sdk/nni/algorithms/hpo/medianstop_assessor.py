"""Documented spelling of the median stop assessor; its home is `nni.hpo.assessors.median_stop`."""

from nni.hpo.assessors.median_stop import MedianstopAssessor

__all__ = ["MedianstopAssessor"]
