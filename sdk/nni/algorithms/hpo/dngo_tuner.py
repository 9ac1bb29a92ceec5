"""Documented spelling of DNGO; its home is `nni.hpo.tuners.dngo`."""

from nni.hpo.tuners.dngo import DNGOTuner

__all__ = ["DNGOTuner"]
