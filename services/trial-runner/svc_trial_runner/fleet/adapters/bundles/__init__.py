"""Bundles: agents packed for machines without an installation, and the program to run them."""
