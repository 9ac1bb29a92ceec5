"""Configurations as rows of numbers, and back; what models learn from."""
