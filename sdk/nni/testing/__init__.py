"""Conformance suites for those who write algorithms: what each family must do, as tests.

Subclass a suite in a test module, say how to build the algorithm, and let pytest collect it.
"""

from nni.testing.advisors import AdvisorConformance, AdvisorDriver
from nni.testing.assessors import AssessorConformance
from nni.testing.declarations import DeclarationConformance
from nni.testing.mutables import MutableConformance
from nni.testing.tuners import TunerConformance

__all__ = [
    "AdvisorConformance",
    "AdvisorDriver",
    "AssessorConformance",
    "DeclarationConformance",
    "MutableConformance",
    "TunerConformance",
]
