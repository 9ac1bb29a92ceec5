"""The built-in tuners, one module each; `nni.hpo` exports their classes."""
