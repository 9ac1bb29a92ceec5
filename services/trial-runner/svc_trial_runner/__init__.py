"""Agent service: runs the trials of one machine."""
