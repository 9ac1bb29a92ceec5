"""Primitives of model spaces, with the arguments of NNI 2.x."""
