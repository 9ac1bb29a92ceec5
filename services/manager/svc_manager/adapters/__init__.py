"""The manager's own implementations of its ports."""
