"""Framework of NNI 2.x; `nni.set_default_framework` is the way to set it today."""

framework = "pytorch"
"""The only framework."""
