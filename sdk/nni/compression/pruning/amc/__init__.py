"""Modules of `AMCPruner`: channels and their cost, calibration, the agent, its environment."""
