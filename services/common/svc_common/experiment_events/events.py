"""Events of the log of an experiment that several services read alike.

The other events differ: each service decodes the part of them that it needs, and users' values stay
encoded in the manager. `AlgorithmRequested` is that of the services of jobs, which no tuner takes
over; manager and dispatcher have classes of their own with the tuner.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AlgorithmRequested:
    """Event: the algorithm is to be constructed, at creation and at each resume."""

    generation: int
    """1 at creation, one more at each resume."""
    directory: str = ""
    """Folder of the experiment at this time; empty: unchanged since creation."""
    service: str = ""
    """Service that answers requests for parameters; empty: the dispatcher."""


@dataclass(frozen=True, slots=True)
class TrialsRequested:
    """Event: parameters for each of these ids are requested from the algorithm."""

    request_id: str
    parameter_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ExperimentMoved:
    """Event: the folder of the experiment, or of its trials' code, moved."""

    directory: str
    """New folder; empty: unchanged."""
    trial_code_directory: str = ""
    """New folder of the trials' code; empty: unchanged."""
