"""Experiments at rest: their logs, snapshots and summaries."""
