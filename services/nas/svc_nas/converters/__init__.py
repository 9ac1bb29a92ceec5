"""Conversion of messages and lines to values, and back."""
