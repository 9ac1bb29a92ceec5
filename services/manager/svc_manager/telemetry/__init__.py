"""Metrics and traces of the manager."""
