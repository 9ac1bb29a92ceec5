"""Actors of live experiments: lease, inbox, decisions, effects."""
