"""Converters between proto messages and domain values, in both directions."""
