"""Decisions of the compressor: progress of a job as a fold of its log."""
