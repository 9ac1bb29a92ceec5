"""Documented import path for `nni.hpo.tuners.evolution`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.hpo.tuners.evolution import EvolutionTuner

__all__ = ["EvolutionTuner"]
