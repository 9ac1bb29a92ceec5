import pickle

import pytest

from nni.common.serializer.payload_size import PayloadTooLarge, check_size


@pytest.mark.parametrize(("length", "limit"), [(10, 10), (10**6, 0), (10**6, -1)])
def test_the_limit_itself_passes_and_zero_is_no_limit(length: int, limit: int) -> None:
    check_size(b"x" * length, limit, "one", [])


def test_the_error_has_path_type_and_sizes() -> None:
    with pytest.raises(PayloadTooLarge) as raised:
        check_size(b"x" * 70_000, 65_536, "trainer.callbacks[0]", [])

    error = raised.value
    assert isinstance(error, ValueError)
    assert (error.path, error.type_name) == ("trainer.callbacks[0]", "list")
    assert (error.size_bytes, error.limit_bytes) == (70_000, 65_536)
    assert "trainer.callbacks[0] (list) takes 70,000 bytes" in str(error)


def test_a_class_is_named_itself() -> None:
    with pytest.raises(PayloadTooLarge, match=r"the object \(PayloadTooLarge\)"):
        check_size(b"xx", 1, "", PayloadTooLarge)


def test_the_error_survives_a_pickle() -> None:
    error = PayloadTooLarge("one", "list", 2, 1, "do less")

    copied = pickle.loads(pickle.dumps(error))

    assert str(copied) == str(error)
    assert vars(copied) == vars(error)
