"""Documented import path for `nni.compression.experiment`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.compression.experiment.auto_compression import AutoCompressionExperiment
from nni.compression.experiment.interface import AbstractAutoCompressionModule
from nni.compression.experiment.search_space import AutoCompressionSearchSpaceGenerator

__all__ = [
    "AbstractAutoCompressionModule",
    "AutoCompressionExperiment",
    "AutoCompressionSearchSpaceGenerator",
]
