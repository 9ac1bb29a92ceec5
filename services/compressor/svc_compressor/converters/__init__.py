"""Converters between messages and values of the domain."""
