"""Documented spellings of the algorithms; their homes are in the packages of their families."""
