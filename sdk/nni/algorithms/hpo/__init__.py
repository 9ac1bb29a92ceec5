"""Documented spellings of tuners and assessors; their homes are in `nni.hpo`."""
