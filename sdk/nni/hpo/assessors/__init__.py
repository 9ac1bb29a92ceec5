"""The built-in assessors, one module each; `nni.hpo` exports their classes."""
