"""Documented spelling of the conversion to ConfigSpace; its home is `nni.hpo.space.configspace`."""

from nni.hpo.space.configspace import from_configspace, parameters_of, to_configspace

__all__ = ["from_configspace", "parameters_of", "to_configspace"]
