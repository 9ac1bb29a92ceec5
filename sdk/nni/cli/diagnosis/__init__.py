"""Checks of `nnictl doctor`, one module per area."""
