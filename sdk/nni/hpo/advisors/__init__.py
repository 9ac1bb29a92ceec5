"""Advisors: algorithms that propose configurations and decide how long each may run."""
