"""Documented import paths of NNI 2.x."""
