"""Benchmark of architecture search: a table of 15,625 cells for scikit-learn's digits."""
