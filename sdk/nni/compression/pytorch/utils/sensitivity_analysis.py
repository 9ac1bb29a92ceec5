"""Documented import path for `nni.compression.utils.sensitivity_analysis`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.compression.utils.sensitivity_analysis import SensitivityAnalysis

__all__ = ["SensitivityAnalysis"]
