"""Parts of `AMCPruner`: channels and their cost, calibration, the agent and its environment."""
