"""The trial-runner as an agent: it runs the trials of one machine."""
