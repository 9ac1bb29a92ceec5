"""Documented import path for `nni.hpo.tuners.tpe`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.hpo.tuners.tpe import TpeArguments
from nni.hpo.tuners.tpe import TPETuner as TpeTuner

__all__ = ["TpeArguments", "TpeTuner"]
