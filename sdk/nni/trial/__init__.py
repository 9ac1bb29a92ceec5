"""Trial side of an experiment: parameters in, metrics out.

The functions are those of the package `nni` itself; they live in `nni.trial.api`. The protocol
underneath is described in ``docs/trial-protocol.md`` and can be spoken from any language.
"""
