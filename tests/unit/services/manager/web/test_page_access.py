import pytest

from svc_manager.web.page_access import LIFETIME_S, ListenerId, PageCookies

LISTENER = ListenerId(8080, "exp", "one")


def test_cookie_names_its_caller() -> None:
    cookies = PageCookies("secret", LISTENER)

    assert cookies.caller_of(cookies.make("alice ü.b")) == "alice ü.b"


def test_cookie_does_not_contain_the_secret() -> None:
    assert "secret" not in PageCookies("secret", LISTENER).make("alice")
    assert "secret" not in repr(PageCookies("secret", LISTENER))


def test_cookie_ends() -> None:
    made = PageCookies("secret", LISTENER, lambda: 1000.0).make("alice")

    assert PageCookies("secret", LISTENER, lambda: 999.0 + LIFETIME_S).caller_of(made) == "alice"
    assert PageCookies("secret", LISTENER, lambda: 1000.0 + LIFETIME_S).caller_of(made) == ""


def test_every_changed_character_is_refused() -> None:
    cookies = PageCookies("secret", LISTENER)
    made = cookies.make("alice")

    for position, character in enumerate(made):
        other = "0" if character != "0" else "1"
        changed = made[:position] + other + made[position + 1 :]
        assert cookies.caller_of(changed) == ""


@pytest.mark.parametrize("text", ["", ".", "...", "v1.1.a.b", "v1..", "ü", "\x00", "a" * 5000])
def test_other_texts_are_refused(text: str) -> None:
    assert PageCookies("secret", LISTENER).caller_of(text) == ""


def test_names_differ_by_listener_and_installation() -> None:
    names = {
        PageCookies(secret, listener).name
        for secret in ("one", "two")
        for listener in (LISTENER, ListenerId(8081, "exp"), ListenerId(8080))
    }

    assert len(names) == 6
