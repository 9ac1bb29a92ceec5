import pytest

from svc_common.errors import InvalidArgumentError
from svc_manager.pages import cut, page_size


def test_pages_join_to_the_whole_list() -> None:
    items, token, seen = list(range(10)), "", []

    while True:
        page = cut(items, token, 4)
        seen += page.items
        assert page.total == 10
        token = page.next_token
        if not token:
            break

    assert seen == items


@pytest.mark.parametrize("token", ["-1", "x", "1.5", "\uff19", "9" * 30])
def test_a_token_that_nobody_gave_is_refused(token: str) -> None:
    with pytest.raises(InvalidArgumentError, match="page_token"):
        cut([1], token, 1)


def test_sizes_have_a_default_and_a_limit() -> None:
    assert page_size(0, default=100, limit=1000) == 100
    assert page_size(5000, default=100, limit=1000) == 1000
    with pytest.raises(InvalidArgumentError):
        page_size(-1, default=100, limit=1000)
