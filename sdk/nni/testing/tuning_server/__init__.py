"""Conformance of servers of `nni_proto.tuning.v1.TuningService`, whatever language they speak.

Run the suite against a server that is up with `python -m nni.testing.tuning_server HOST:PORT`, or
subclass `TuningServerConformance` in a test module and let pytest collect it.
"""

from nni.testing.tuning_server.client import TuningClient
from nni.testing.tuning_server.suite import TuningServerConformance

__all__ = ["TuningClient", "TuningServerConformance"]
