"""Documented import path for `nni.hpo.advisor` and `nni.hpo.commands`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.hpo.advisor import MsgDispatcherBase
from nni.hpo.commands import CommandType, MetricType, send

__all__ = ["CommandType", "MetricType", "MsgDispatcherBase", "send"]
