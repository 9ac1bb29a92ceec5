"""Documented spelling of the contract for tuners; its home is `nni.hpo.base`."""

from nni.errors import NoMoreTrialError
from nni.hpo.base import Tuner

__all__ = ["NoMoreTrialError", "Tuner"]
