"""Host process of one experiment's algorithm: `python -m nni.hpo.host`.

The dispatcher starts it under the interpreter of the user who created the experiment, so that
custom classes find their packages. The host reads commands from one inherited pipe and answers on
another; the dispatcher's README describes the protocol.
"""
