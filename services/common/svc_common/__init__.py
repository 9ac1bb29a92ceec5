"""Plumbing that two or more services need, each part written once.

Nothing here knows what an experiment decides; it moves, keeps and guards what services exchange.
"""
