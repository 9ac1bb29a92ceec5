"""Registry of the experiments whose algorithm this dispatcher hosts."""

from svc_common.experiment_sessions import ExperimentSessions, SessionKind
from svc_dispatcher.converters import log_messages
from svc_dispatcher.sessions.experiment_session import ExperimentSession
from svc_dispatcher.sessions.generation import SessionDependencies


def session_registry(dependencies: SessionDependencies) -> ExperimentSessions:
    """Return a session registry, for the caller to run: one session per algorithm's experiment.

    Args:
        dependencies: ports and limits that all sessions share.
    """
    kind = SessionKind(
        lambda experiment_id: ExperimentSession(experiment_id, dependencies),
        begins=log_messages.wants_algorithm,
        ends=log_messages.ends_experiment,
    )
    return ExperimentSessions(dependencies.events, dependencies.clock, kind)
