"""Calls of the client about pools and invitations to them, and the message of a pool's file."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from nni.experiment.connection import CALL_TIMEOUT_S, Connection
from nni.experiment.errors import NotFoundError
from nni_proto.experiment.v1 import config_pb2, experiment_pb2, experiment_service_pb2
from nni_proto.runner.v1 import invitation_service_pb2, pool_pb2
from nni_proto.runner.v1 import pool_service_pb2 as pb
from nni_wire.values import to_value

if TYPE_CHECKING:
    from nni.experiment.config.pool_file import PoolFile

PLATFORM_TIMEOUT_S: Final = 120.0
"""Time-out of calls in which platforms are asked, or cleaned."""


class PoolCalls(Connection):
    """Connection with one typed, blocking method per call about pools and invitations to them."""

    def create_pool(self, definition: pool_pb2.PoolDefinition) -> pb.Pool:
        """Create a pool and return it; a repetition with the same content returns it, too."""
        request = pb.CreatePoolRequest(definition=definition)
        answer = self._call(lambda: self._pools.CreatePool, request, PLATFORM_TIMEOUT_S)
        return _pool(answer)

    def update_pool(self, definition: pool_pb2.PoolDefinition) -> pb.Pool:
        """Replace platforms, secrets and limits of a pool, and return it."""
        request = pb.UpdatePoolRequest(definition=definition)
        answer = self._about(
            definition.pool, lambda: self._pools.UpdatePool, request, PLATFORM_TIMEOUT_S
        )
        return _pool(answer)

    def pool(self, name: str) -> pb.Pool:
        """Return a pool with its state and the experiments that use it."""
        request = pb.GetPoolRequest(pool=name)
        return _pool(self._about(name, lambda: self._pools.GetPool, request))

    def pools(self) -> list[pb.Pool]:
        """Return all pools of the installation, by name."""
        pages = self._pages(lambda: self._pools.ListPools, pb.ListPoolsRequest())
        return [pool for page in pages for pool in page.pools]

    def drain_pool(self, name: str, *, undo: bool = False) -> pb.Pool:
        """Drain a pool: its agents end after their trials; or undo that; return the pool."""
        request = pb.DrainPoolRequest(pool=name, undo=undo)
        return _pool(self._about(name, lambda: self._pools.DrainPool, request))

    def remove_pool(self, name: str, *, force: bool = False) -> None:
        """Remove a pool once nothing of it is left on its platforms."""
        request = pb.RemovePoolRequest(pool=name, force=force)
        self._about(name, lambda: self._pools.RemovePool, request, PLATFORM_TIMEOUT_S)

    def clean_platforms(
        self, platforms: Sequence[pool_pb2.PoolPlatform], *, dry_run: bool
    ) -> pb.CleanPlatformsResponse:
        """Remove leftovers of no pool from platforms; with ``dry_run`` only list them."""
        request = pb.CleanPlatformsRequest(platforms=platforms, dry_run=dry_run)
        answer: pb.CleanPlatformsResponse = self._call(
            lambda: self._pools.CleanPlatforms, request, PLATFORM_TIMEOUT_S
        )
        return answer

    def invite_runner(
        self, pool: str, use_limit: int, validity_s: float
    ) -> invitation_service_pb2.InviteRunnerResponse:
        """Create an invitation to a pool; its secret word is in this response only."""
        request = invitation_service_pb2.InviteRunnerRequest(pool=pool, use_limit=use_limit)
        request.validity.FromMilliseconds(round(validity_s * 1000))
        answer: invitation_service_pb2.InviteRunnerResponse = self._about(
            pool, lambda: self._invitations.InviteRunner, request, PLATFORM_TIMEOUT_S
        )
        return answer

    def front(self) -> invitation_service_pb2.GetFrontResponse:
        """Return the TLS front as the fleet published it last; without address if it is closed."""
        request = invitation_service_pb2.GetFrontRequest()
        answer: invitation_service_pb2.GetFrontResponse = self._call(
            lambda: self._invitations.GetFront, request
        )
        return answer

    def invitations(self, pool: str) -> list[invitation_service_pb2.Invitation]:
        """Return the invitations of a pool that are valid, without their words."""
        request = invitation_service_pb2.ListInvitationsRequest(pool=pool)
        answer = self._call(lambda: self._invitations.ListInvitations, request)
        return list(answer.invitations)

    def revoke_invitations(
        self, pool: str, ids: Sequence[str] = ()
    ) -> list[invitation_service_pb2.Invitation]:
        """Revoke invitations of a pool, all if none is named; return those that were valid."""
        request = invitation_service_pb2.RevokeInvitationsRequest(pool=pool, ids=ids)
        answer = self._call(lambda: self._invitations.RevokeInvitations, request)
        return list(answer.invitations)

    def update_agent_limits(
        self, experiment_id: str, limits: config_pb2.AgentLimits
    ) -> experiment_pb2.Experiment:
        """Change the limits of the pool of an experiment that are set; return the experiment."""
        request = experiment_service_pb2.UpdateExperimentRequest(
            request_id=uuid.uuid4().hex, experiment_id=experiment_id, agent_limits=limits
        )
        answer: experiment_service_pb2.UpdateExperimentResponse = self._call(
            lambda: self._experiments.UpdateExperiment, request
        )
        return answer.experiment

    def _about(
        self,
        name: str,
        method: Callable[[], Any],
        request: object,
        timeout_s: float = CALL_TIMEOUT_S,
    ) -> Any:  # noqa: ANN401 - as `_call`
        """Return a call's answer about a pool; NotFoundError names the pools that exist.

        Raises:
            NotFoundError: no pool has this name.
        """
        try:
            return self._call(method, request, timeout_s)
        except NotFoundError as error:
            known = [pool.definition.pool for pool in self.pools()]
            raise NotFoundError(f"{error}; {_other_pools(name, known)}", error.facts) from error


def _other_pools(name: str, known: Sequence[str]) -> str:
    """Return text that names the pools, and the closest one, as the remedy for a wrong name."""
    if not known:
        return "there is none; make one with: nnictl pool create FILE"
    near = get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"known are: {', '.join(known)}{hint}"


def pool_to_proto(file: PoolFile) -> pool_pb2.PoolDefinition:
    """Return the checked file of a pool as a message, secret values included."""
    # Few commands of `nnictl` need the configuration, and its modules take 150 ms.
    from nni.experiment.config.quantities import duration_seconds
    from nni.experiment.conversion import duration_message

    definition = pool_pb2.PoolDefinition(pool=file.name)
    for section in file.platforms():
        options = section.sent_fields()
        platform = options.pop("platform")
        if file.slots is not None:
            options.setdefault("slots", file.slots)
        definition.platforms.add(
            platform=platform, options=to_value(options), secret_paths=section.secret_paths()
        )
    limits = definition.limits
    limits.min_agents = file.min_agents or 0
    limits.max_agents = file.max_agents or 0
    if file.idle_time is not None:
        limits.idle.CopyFrom(duration_message(duration_seconds(file.idle_time)))
    if file.max_agent_time is not None:
        limits.max_agent_time.CopyFrom(duration_message(duration_seconds(file.max_agent_time)))
    limits.max_cost = file.max_cost or 0.0
    limits.cost_per_agent_hour = file.cost_per_agent_hour or 0.0
    return definition


def _pool(answer: Any) -> pb.Pool:  # noqa: ANN401 - any answer with a pool
    pool: pb.Pool = answer.pool
    return pool
