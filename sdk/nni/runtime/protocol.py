"""Documented spelling of an advisor's commands; their home is `nni.hpo.commands`."""

from nni.hpo.commands import CommandType, send

__all__ = ["CommandType", "send"]
