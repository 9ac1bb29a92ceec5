"""Encodings of configurations as numbers for models, and back."""
