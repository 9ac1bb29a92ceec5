from dataclasses import dataclass

from nni_proto.experiment.v1 import event_pb2
from svc_manager.converters.event_functions import FieldCodec, compile_reader, compile_writer


@dataclass(frozen=True, slots=True)
class Failure:
    """Event with two fields, both of which its message has."""

    call: str
    traceback: str


LOUDLY = FieldCodec("call", str.upper, "", lambda part, text: setattr(part, "call", text.lower()))
AS_IT_IS = FieldCodec("traceback", None, "traceback", None)


def test_a_reader_converts_each_field_and_takes_the_others_as_they_are() -> None:
    read = compile_reader(Failure, {"call": LOUDLY, "traceback": AS_IT_IS})

    event = read(event_pb2.AlgorithmFailed(call="ask", traceback="Line 1"))

    assert event == Failure("ASK", "Line 1")


def test_a_reader_passes_the_whole_message_to_a_converter_without_a_source() -> None:
    both = FieldCodec("", lambda message: message.call + message.traceback, "", None)
    read = compile_reader(Failure, {"call": both, "traceback": AS_IT_IS})

    event = read(event_pb2.AlgorithmFailed(call="a", traceback="b"))

    assert event == Failure("ab", "b")


def test_a_writer_writes_each_field_into_the_part_for_its_kind() -> None:
    write = compile_writer("algorithm_failed", {"call": LOUDLY, "traceback": AS_IT_IS})
    message = event_pb2.Event()

    write(message, Failure("ASK", "Line 1"))

    written = event_pb2.AlgorithmFailed(call="ask", traceback="Line 1")
    assert message == event_pb2.Event(algorithm_failed=written)


def test_a_writer_passes_the_target_of_a_field_to_its_converter() -> None:
    texts = FieldCodec("", None, "call", lambda part, text: parts.append((part, text)))
    parts: list[tuple[str, str]] = []
    write = compile_writer("algorithm_failed", {"traceback": AS_IT_IS, "call": texts})

    write(event_pb2.Event(), Failure("ASK", "Line 1"))

    assert parts == [("", "ASK")]


def test_an_event_of_empty_fields_is_written_with_its_kind() -> None:
    write = compile_writer("algorithm_failed", {"call": AS_IT_IS})
    message = event_pb2.Event()

    write(message, Failure("", ""))

    assert message.WhichOneof("kind") == "algorithm_failed"
