"""Documented import path for `nni.compression.pruning.sensitivity_analysis`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.compression.pruning.sensitivity_analysis import SensitivityAnalysis

__all__ = ["SensitivityAnalysis"]
