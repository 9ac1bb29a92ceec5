"""Experiments with the arguments of NNI 2.x; `pytorch` has the names."""
