"""Blobs of experiments in the byte store: large values, outputs, checkpoints, usage and garbage."""
