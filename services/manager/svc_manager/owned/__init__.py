"""Experiments that live here: who owns them, decides, and carries out."""
