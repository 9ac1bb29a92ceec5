"""Documented import paths of the selectors; their homes are in `nni.feature_engineering`."""
