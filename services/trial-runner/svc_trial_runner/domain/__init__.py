"""Decisions and values of the agent, without I/O, clock or randomness."""
