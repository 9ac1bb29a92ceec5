"""Documented spelling of Hyperband; its home is `nni.hpo.advisors.hyperband`."""

from nni.hpo.advisors.hyperband import Hyperband

__all__ = ["Hyperband"]
