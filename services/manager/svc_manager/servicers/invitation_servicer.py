"""gRPC servicer of invitations to pools."""

from datetime import timedelta
from typing import Any, TypeAlias

import grpc.aio

from nni_proto.runner.v1 import invitation_service_pb2 as pb
from nni_proto.runner.v1 import invitation_service_pb2_grpc as pb_grpc
from svc_common.errors import InvalidArgumentError
from svc_manager.usecases.invitations import VALIDITY, Invitations

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]


class InvitationServicer(pb_grpc.InvitationServiceServicer):
    """gRPC servicer that makes, lists and revokes invitations.

    Args:
        invitations: use cases.
    """

    def __init__(self, invitations: Invitations) -> None:
        self._invitations = invitations

    async def InviteRunner(
        self, request: pb.InviteRunnerRequest, context: Context
    ) -> pb.InviteRunnerResponse:
        """Create an invitation to a pool; return its secret word, front's address and record."""
        made = await self._invitations.invite(
            request.pool,
            request.use_limit or 1,
            _validity(request),
        )
        return pb.InviteRunnerResponse(
            word=made.word, address=made.address, invitation=made.invitation
        )

    async def ListInvitations(
        self, request: pb.ListInvitationsRequest, context: Context
    ) -> pb.ListInvitationsResponse:
        """Return the valid invitations of a pool, without their words."""
        return pb.ListInvitationsResponse(invitations=await self._invitations.valid(request.pool))

    async def RevokeInvitations(
        self, request: pb.RevokeInvitationsRequest, context: Context
    ) -> pb.RevokeInvitationsResponse:
        """Revoke invitations of a pool by ids, or all of them; return the revoked ones."""
        ended = await self._invitations.revoke(request.pool, list(request.ids))
        return pb.RevokeInvitationsResponse(invitations=ended)

    async def GetFront(self, request: pb.GetFrontRequest, context: Context) -> pb.GetFrontResponse:
        """Return the TLS front of the installation as the fleet published it last."""
        return await self._invitations.front()


def _validity(request: pb.InviteRunnerRequest) -> timedelta:
    if not request.HasField("validity"):
        return VALIDITY
    try:
        return request.validity.ToTimedelta()
    except (ValueError, OverflowError) as error:
        raise InvalidArgumentError("validity", "must be from 1 s to 30 days") from error
