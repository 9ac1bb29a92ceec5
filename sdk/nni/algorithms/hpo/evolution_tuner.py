"""Documented spelling of naive evolution; its home is `nni.hpo.tuners.evolution`."""

from nni.hpo.tuners.evolution import EvolutionTuner

__all__ = ["EvolutionTuner"]
