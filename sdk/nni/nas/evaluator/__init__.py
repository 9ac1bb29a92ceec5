"""Evaluators of architecture search: they train and validate models, and report metrics."""
