"""Platforms whose adapter runs in a child process of the fleet."""
