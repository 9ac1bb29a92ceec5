"""Documented import paths of NAS 1.0, NNI 1.x."""
