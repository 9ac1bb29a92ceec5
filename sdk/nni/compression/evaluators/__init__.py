"""Evaluators: how a compressor trains and evaluates the model of a user."""
