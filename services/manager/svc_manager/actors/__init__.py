"""Actors of live experiments: lease, inbox, decisions and effects."""
