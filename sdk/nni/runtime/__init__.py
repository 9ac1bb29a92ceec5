"""Documented spellings around advisors; their homes are in `nni.hpo`."""
