"""Documented import path for `nni.hpo.tuners.network_morphism.tuner`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.hpo.tuners.network_morphism.tuner import NetworkMorphismTuner

__all__ = ["NetworkMorphismTuner"]
