"""Agents of this installation: presence, liveness, versions."""
