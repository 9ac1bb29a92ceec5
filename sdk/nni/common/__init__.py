"""Utilities for authors of algorithms."""
