"""Documented import path for `nni.compression.pruning.legacy.ticket_pruner`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.compression.pruning.legacy.ticket_pruner import TicketPruner as LotteryTicketPruner

__all__ = ["LotteryTicketPruner"]
