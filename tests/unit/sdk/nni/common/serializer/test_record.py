import pytest

from nni.common.serializer.record import (
    MARKER,
    TraceMarker,
    Translatable,
    is_traceable,
    is_wrapped_with_trace,
    marker_of,
    unwrapped_symbol,
)


class Wrapped:
    pass


WRAPPER = type("Wrapped", (Wrapped,), {MARKER: TraceMarker(Wrapped, True, False)})


def test_the_marker_counts_in_the_own_namespace_only() -> None:
    assert is_wrapped_with_trace(WRAPPER)
    assert not is_wrapped_with_trace(type("Sub", (WRAPPER,), {}))
    assert marker_of(3) is None


def test_a_wrapper_leads_to_what_it_wraps() -> None:
    assert unwrapped_symbol(WRAPPER) is Wrapped
    assert unwrapped_symbol(Wrapped) is Wrapped


def test_an_object_with_a_part_of_the_record_is_not_traced() -> None:
    instance = Wrapped()
    vars(instance)["trace_symbol"] = Wrapped

    assert not is_traceable(instance)


def test_what_represents_another_value_must_say_which() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Translatable()  # type: ignore[abstract]
