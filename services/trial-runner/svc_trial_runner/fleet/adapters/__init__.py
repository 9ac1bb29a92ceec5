"""Adapters of the fleet: one module per platform."""
