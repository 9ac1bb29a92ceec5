import pytest

from nni_wire.page_login import LIFETIME_S, is_login_code, is_valid_code, login_code


def test_code_is_valid_for_its_token_port_and_time() -> None:
    code = login_code("secret", 8080, 1000.0)

    assert is_login_code(code)
    assert "secret" not in code
    assert is_valid_code(code, "secret", 8080, 1000.0)
    assert not is_valid_code(code, "other", 8080, 1000.0)
    assert not is_valid_code(code, "secret", 8081, 1000.0)
    assert not is_valid_code(code, "secret", 8080, 1000.0 + LIFETIME_S)


def test_code_is_valid_at_one_socket_of_its_port() -> None:
    code = login_code("secret", 8080, 1000.0, "one")

    assert is_valid_code(code, "secret", 8080, 1000.0, "one")
    assert not is_valid_code(code, "secret", 8080, 1000.0, "two")
    assert not is_valid_code(code, "secret", 8080, 1000.0)


def test_end_cannot_be_moved() -> None:
    kind, end, given = login_code("secret", 8080, 1000.0).split(".")

    assert not is_valid_code(f"{kind}.{int(end) + 1}.{given}", "secret", 8080, 1000.0)


@pytest.mark.parametrize("text", ["", "token", "page", "page.", "a.b.c", "page.1.2.3"])
def test_tokens_are_no_codes(text: str) -> None:
    assert not is_login_code(text)
    assert not is_valid_code(text, "secret", 8080, 0.0)
