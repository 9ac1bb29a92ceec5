"""Documented spelling of the base of advisors; its home is `nni.hpo.advisor`."""

from nni.hpo.advisor import MsgDispatcherBase
from nni.hpo.commands import CommandType, MetricType, send

__all__ = ["CommandType", "MetricType", "MsgDispatcherBase", "send"]
