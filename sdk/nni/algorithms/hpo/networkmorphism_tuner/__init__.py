"""Documented spelling of network morphism; its home is `nni.hpo.tuners.network_morphism.tuner`."""

from nni.hpo.tuners.network_morphism.tuner import NetworkMorphismTuner

__all__ = ["NetworkMorphismTuner"]
