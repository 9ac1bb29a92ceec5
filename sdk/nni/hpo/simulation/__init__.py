"""Simulation of experiments on recorded learning curves, in virtual time."""
