"""Documented spelling of BOHB; its home is `nni.hpo.advisors.bohb`."""

from nni.hpo.advisors.bohb import BOHB

__all__ = ["BOHB"]
