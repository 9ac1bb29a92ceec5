"""Bundles: agents packed for machines without an installation, and the program that runs there."""
