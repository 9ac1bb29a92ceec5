"""Use cases: invitations, by which people turn machines into agents of a pool."""

import asyncio
import hashlib
import secrets
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from google.protobuf.message import DecodeError
from nni_proto.runner.v1.invitation_service_pb2 import Invitation

from nni_proto.runner.v1 import invitation_service_pb2, pool_pb2
from nni_wire.pools import LOCAL_POOL
from svc_common import subjects
from svc_common.clock import Clock
from svc_common.errors import (
    AbortedError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    UnavailableError,
)
from svc_common.messaging.ports import LastValue, LastValues

USE_LIMIT: Final = 1_000
"""Most machines of one invitation."""
VALIDITY: Final = timedelta(hours=1)
VALIDITY_LIMIT: Final = timedelta(days=30)
INVITATIONS_LIMIT: Final = 100
"""Most invitations of one pool."""
FRONT_LIMIT: Final = timedelta(seconds=30)
"""Longest wait for the fleet to open its TLS front: the fleet may have to be started."""
_SECRET_BYTES: Final = 24
_ID_DIGITS: Final = 8


@dataclass(frozen=True, slots=True)
class NewInvitation:
    """New invitation with its secret word, which is not stored, and the TLS front's address."""

    word: str = field(repr=False)
    address: str
    """`host:port` of the TLS front."""
    invitation: Invitation


class Invitations:
    """Use cases that make, list and revoke invitations to pools.

    Args:
        last_values: needs, invitations and fronts of pools.
        clock: for the validity of invitations.
        front_limit: longest wait for the front.
    """

    def __init__(
        self, last_values: LastValues, clock: Clock, front_limit: timedelta = FRONT_LIMIT
    ) -> None:
        self._last_values = last_values
        self._clock = clock
        self._front_limit = front_limit
        self._changing = asyncio.Lock()

    async def invite(
        self, pool: str, use_limit: int = 1, validity: timedelta = VALIDITY
    ) -> NewInvitation:
        """Create an invitation, wait for the TLS front; return word, address; revoke it on failure.

        Args:
            pool: that agents join.
            use_limit: machines that may enrol.
            validity: for how long.

        Raises:
            InvalidArgumentError: a number is out of range.
            NotFoundError: there is no such pool.
            FailedPreconditionError: the pool is closed, drains or is being removed, or the front
                cannot be opened.
            UnavailableError: the fleet does not answer.
        """
        if not 1 <= use_limit <= USE_LIMIT:
            raise InvalidArgumentError("use_limit", f"must be 1 to {USE_LIMIT}", use_limit)
        if not timedelta(seconds=1) <= validity <= VALIDITY_LIMIT:
            raise InvalidArgumentError("validity", "must be from 1 s to 30 days", str(validity))
        await self._check_open(pool)
        secret = secrets.token_urlsafe(_SECRET_BYTES)
        digest = hashlib.sha256(secret.encode()).hexdigest()
        invitation = Invitation(id=digest[:_ID_DIGITS], sha256=digest, use_limit=use_limit)
        invitation.expires_at.FromDatetime(self._clock.now() + validity)

        def enlarged(present: Sequence[Invitation]) -> list[Invitation]:
            if len(present) >= INVITATIONS_LIMIT:
                raise FailedPreconditionError(
                    f"pool {pool} has {INVITATIONS_LIMIT} invitations; revoke some of them"
                )
            return [*present, invitation]

        await self._change(pool, enlarged)
        try:
            front = await self._front(pool, invitation.id)
        except (FailedPreconditionError, UnavailableError):
            await self.revoke(pool, [invitation.id])
            raise
        word = f"nni1.{secret}.{front.authority_sha256}"
        return NewInvitation(word, front.address, _shown(invitation))

    async def valid(self, pool: str) -> list[Invitation]:
        """Return a pool's unexpired invitations, without the hashes of their secrets."""
        subjects.check_id("pool", pool)
        return [_shown(one) for one in await self._valid(pool)]

    async def revoke(self, pool: str, ids: Sequence[str] = ()) -> list[Invitation]:
        """Revoke these invitations of a pool, or all if none are named; return the revoked ones.

        Agents that have enrolled with them stay.

        Args:
            pool: whose invitations these are.
            ids: of the invitations; none: all.

        Raises:
            NotFoundError: an id is none of a valid invitation.
        """

        def remaining(present: Sequence[Invitation]) -> list[Invitation]:
            known = {one.id for one in present}
            for wanted in ids:
                if wanted not in known:
                    raise NotFoundError("invitation", wanted)
            return [one for one in present if ids and one.id not in ids]

        before, after = await self._change(pool, remaining)
        return [_shown(one) for one in before if one not in after]

    async def front(self) -> invitation_service_pb2.GetFrontResponse:
        """Return the TLS front as the fleet published it last; without address if it is closed."""
        values = await self._last_values.read(subjects.pool_front_subject(LOCAL_POOL))
        if not values:
            return invitation_service_pb2.GetFrontResponse()
        found = invitation_service_pb2.PoolFront.FromString(values[-1].payload)
        return invitation_service_pb2.GetFrontResponse(
            address=found.address, authority_sha256=found.authority_sha256
        )

    async def _check_open(self, pool: str) -> None:
        needs = await self._last_values.read(subjects.pool_need_subject(pool))
        definitions = await self._last_values.read(subjects.pool_definition_subject(pool))
        if definitions:
            definition = pool_pb2.PoolDefinition.FromString(definitions[-1].payload)
            if definition.removed or definition.draining:
                doing = "is being removed" if definition.removed else "drains"
                raise FailedPreconditionError(f"pool {pool} {doing}, it takes no more agents")
            return
        if not needs:
            raise NotFoundError("pool", pool)
        if pool_pb2.PoolNeed.FromString(needs[-1].payload).closed:
            raise FailedPreconditionError(f"the experiment of pool {pool} has ended")

    async def _valid(self, pool: str) -> list[Invitation]:
        """Read a pool's unexpired invitations from the bus, with the hashes of their secrets."""
        return self._among(await self._last_values.read(subjects.pool_invitations_subject(pool)))

    def _among(self, values: Sequence[LastValue]) -> list[Invitation]:
        if not values:
            return []
        message = invitation_service_pb2.PoolInvitations.FromString(values[-1].payload)
        now_s = self._clock.now().timestamp()
        return [one for one in message.invitations if one.expires_at.ToSeconds() > now_s]

    async def _change(
        self, pool: str, change: Callable[[Sequence[Invitation]], list[Invitation]]
    ) -> tuple[list[Invitation], list[Invitation]]:
        """Change a pool's invitations atomically, retried on a conflict; return old and new ones.

        The change is repeated on what another manager has published meanwhile.
        """
        subject = subjects.pool_invitations_subject(pool)
        async with self._changing:
            while True:
                values = await self._last_values.read(subject)
                before = self._among(values)
                after = change(before)
                if after == before:
                    return before, after
                message = invitation_service_pb2.PoolInvitations(pool=pool, invitations=after)
                try:
                    await self._last_values.publish(
                        subject,
                        message.SerializeToString(deterministic=True),
                        expected_sequence=values[-1].sequence if values else 0,
                    )
                except AbortedError:
                    continue
                return before, after

    async def _front(self, pool: str, invitation_id: str) -> invitation_service_pb2.PoolFront:
        """Wait, within a limit, until the fleet has read an invitation; return its TLS front.

        Raises:
            FailedPreconditionError: the front cannot be opened.
            UnavailableError: the fleet does not answer in time.
        """
        try:
            async with (
                asyncio.timeout(self._front_limit.total_seconds()),
                aclosing(self._last_values.follow(subjects.pool_front_subject(pool))) as values,
            ):
                async for value in values:
                    front = invitation_service_pb2.PoolFront.FromString(value.payload)
                    if invitation_id in front.invitation_ids:
                        break
        except (TimeoutError, DecodeError) as error:
            raise UnavailableError(
                f"the fleet has not opened its TLS front within "
                f"{self._front_limit.total_seconds():g} s; see the log of the fleet"
            ) from error
        if front.reason:
            remedy = f"; {front.remedy}" if front.remedy else ""
            raise FailedPreconditionError(f"{front.reason}{remedy}")
        return front


def _shown(one: Invitation) -> Invitation:
    """Return a copy of an invitation without the hash of its secret."""
    return Invitation(id=one.id, use_limit=one.use_limit, expires_at=one.expires_at)
