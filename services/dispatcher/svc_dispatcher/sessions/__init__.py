"""Experiment sessions: registry, one session per experiment, one run per host."""
