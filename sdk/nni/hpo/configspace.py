"""Documented import path for `nni.hpo.space.configspace`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.hpo.space.configspace import from_configspace, parameters_of, to_configspace

__all__ = ["from_configspace", "parameters_of", "to_configspace"]
