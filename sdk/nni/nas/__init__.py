"""Neural architecture search: spaces, evaluators, strategies and experiments.

Importing this package loads none of them; each has a package of its own.
"""
