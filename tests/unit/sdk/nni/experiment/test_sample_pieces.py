"""Samples are sent in messages that the manager accepts."""

import pytest

from nni.experiment.sample_pieces import PIECE_BYTES, sample_pieces
from nni_proto.common.v1 import value_pb2
from nni_wire.values import from_value, to_value
from svc_common.rpc.message_parts import PARTS_LIMIT, count_parts


@pytest.mark.parametrize("limit_bytes", [1, 30, 60, 200, 10_000])
def test_pieces_have_all_samples_in_order_and_are_no_larger_than_allowed(limit_bytes: int) -> None:
    samples = [{"parameter": {"x": number / 7}, "value": number} for number in range(20)]

    pieces = list(sample_pieces(to_value(samples), limit_bytes))

    assert [sample for piece in pieces for sample in from_value(piece)] == samples
    assert all(
        piece.ByteSize() <= limit_bytes + 10 or len(piece.list_value.items) == 1 for piece in pieces
    )


@pytest.mark.parametrize("data", [[], [1], ["x" * 100], {"not": ["a", "list"]}, None])
def test_what_cannot_be_divided_is_one_piece(data: object) -> None:
    assert [from_value(piece) for piece in sample_pieces(to_value(data), 5)] == [data]


def test_manager_accepts_a_piece_of_the_smallest_parts() -> None:
    value = value_pb2.Value()
    value.list_value.items.extend([value_pb2.Value()] * (PIECE_BYTES // 2 + 1000))

    for piece in sample_pieces(value):
        parts = count_parts(piece.SerializeToString(), value.DESCRIPTOR, PARTS_LIMIT)
        assert parts < PARTS_LIMIT
