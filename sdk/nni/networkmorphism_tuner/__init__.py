"""Older documented spelling of network morphism, for trial code."""
