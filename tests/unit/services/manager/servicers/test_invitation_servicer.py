"""Tests of the gRPC servicer of invitations."""

from datetime import timedelta
from unittest.mock import Mock

import pytest

from nni_proto.runner.v1 import invitation_service_pb2 as pb
from svc_common.clock import SystemClock
from svc_common.errors import InvalidArgumentError, NotFoundError
from svc_common.messaging.memory import InMemoryBus
from svc_common.messaging.memory_broker import InMemoryBroker
from svc_manager.servicers.invitation_servicer import InvitationServicer
from svc_manager.usecases.invitations import Invitations

CONTEXT = Mock()


def servicer() -> InvitationServicer:
    bus = InMemoryBus(InMemoryBroker())
    return InvitationServicer(Invitations(bus.last_values, SystemClock(), timedelta(0)))


async def test_pool_without_invitations_has_an_empty_list() -> None:
    listed = await servicer().ListInvitations(pb.ListInvitationsRequest(pool="p"), CONTEXT)
    revoked = await servicer().RevokeInvitations(pb.RevokeInvitationsRequest(pool="p"), CONTEXT)

    assert (len(listed.invitations), len(revoked.invitations)) == (0, 0)


async def test_unset_numbers_have_defaults() -> None:
    with pytest.raises(NotFoundError, match="pool"):  # beyond the checks of the numbers
        await servicer().InviteRunner(pb.InviteRunnerRequest(pool="p"), CONTEXT)


@pytest.mark.parametrize("seconds", [0, -1, 31 * 86_400, 10**16])
async def test_validity_out_of_range_is_refused(seconds: int) -> None:
    request = pb.InviteRunnerRequest(pool="p")
    request.validity.seconds = seconds

    with pytest.raises(InvalidArgumentError, match="30 days"):
        await servicer().InviteRunner(request, CONTEXT)


async def test_front_that_was_never_open_has_no_address() -> None:
    found = await servicer().GetFront(pb.GetFrontRequest(), CONTEXT)

    assert found == pb.GetFrontResponse()
