"""Pruners with the arguments and results that NNI 1.x and 2.x document."""
