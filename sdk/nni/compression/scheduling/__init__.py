"""Schedules of pruning in several iterations."""
