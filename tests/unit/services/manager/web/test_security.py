"""The access policy, and its application by a site."""

from __future__ import annotations

import pytest

from nni_wire.page_login import login_code
from svc_common.access.roles import Role
from svc_common.access.transport import is_loopback
from svc_common.errors import PermissionDeniedError, UnauthenticatedError
from svc_manager.web.errors import UnsupportedTypeError
from svc_manager.web.page_access import ListenerId
from svc_manager.web.security import AccessPolicy, RequestHead, host_name
from tests.unit.services.manager.web.conftest import API, TOKEN, Site

POLICY = AccessPolicy(TOKEN)


def head(method: str = "GET", **given: object) -> RequestHead:
    facts: dict[str, object] = {
        "host": "127.0.0.1:8080",
        "origin": "",
        "content_type": "application/json" if method != "GET" else "",
        "has_body": method != "GET",
        "authorization": "",
        "cookie_token": "",
    }
    return RequestHead(method=method, **(facts | given))  # type: ignore[arg-type] # facts of a test


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8080", "localhost:1", "[::1]:80", "127.9.9.9"]
)
def test_loopback_hosts_may_read_without_token(host: str) -> None:
    POLICY.check(head(host=host))


@pytest.mark.parametrize(
    "host",
    ["", "evil.example", "evil.example:8080", "127.0.0.1.evil.example", "10.0.0.1", "0.0.0.0"],
)
def test_other_hosts_are_refused(host: str) -> None:
    with pytest.raises(PermissionDeniedError, match="Host"):
        POLICY.check(head(host=host))


@pytest.mark.parametrize(
    "origin",
    ["null", "http://evil.example", "http://127.0.0.1:9999", "http://localhost:8080", "file://"],
)
def test_pages_of_other_origins_are_refused_even_to_read(origin: str) -> None:
    with pytest.raises(PermissionDeniedError, match="Origin"):
        POLICY.check(head(origin=origin))


def test_own_page_may_read_and_with_its_cookie_change() -> None:
    own = "http://127.0.0.1:8080"

    POLICY.check(head(origin=own))
    POLICY.check(head("PUT", origin=own, cookie_token=POLICY.cookies.make("installation")))


def test_token_in_the_place_of_the_cookie_is_refused() -> None:
    with pytest.raises(UnauthenticatedError):
        POLICY.check(head("PUT", cookie_token=TOKEN))


@pytest.mark.parametrize(
    "other",
    [
        ListenerId(8081, "exp", "one"),
        ListenerId(8080, "other", "one"),
        ListenerId(8080, "", "one"),
        ListenerId(8080, "exp", "two"),
    ],
)
def test_cookie_is_valid_at_its_listener_only(other: ListenerId) -> None:
    policy = AccessPolicy(TOKEN, listener=ListenerId(8080, "exp", "one"))
    cookie = policy.cookies.make("installation")

    assert policy.check(head("PUT", cookie_token=cookie)).role is Role.ADMIN
    with pytest.raises(UnauthenticatedError):
        AccessPolicy(TOKEN, listener=other).check(head("PUT", cookie_token=cookie))


def test_cookie_of_a_name_with_two_addresses_is_not_valid() -> None:
    policy = AccessPolicy(TOKEN, listener=ListenerId(8080, "exp", "one"))
    cookie = policy.cookies.make("installation")

    assert policy.check(head("PUT", cookie_token=cookie)).role is Role.ADMIN
    with pytest.raises(UnauthenticatedError):
        policy.check(head("PUT", host="localhost:8080", cookie_token=cookie))


def test_stolen_cookie_is_no_bearer_token() -> None:
    cookie = POLICY.cookies.make("installation")

    with pytest.raises(UnauthenticatedError):
        POLICY.check(head("PUT", authorization=f"Bearer {cookie}"))


def test_login_code_is_valid_at_its_port_until_its_end() -> None:
    moment = 1_000_000.0
    policy = AccessPolicy(TOKEN, listener=ListenerId(8080), now_s=lambda: moment)
    code = login_code(TOKEN, 8080, moment)

    cookie = policy.log_in(head(), code)
    assert policy.check(head("PUT", cookie_token=cookie)).name == "installation"
    for refused in (login_code(TOKEN, 8081, moment), login_code("other", 8080, moment)):
        with pytest.raises(UnauthenticatedError):
            policy.log_in(head(), refused)
    moment += 12 * 3600
    with pytest.raises(UnauthenticatedError):
        policy.log_in(head(), code)
    with pytest.raises(UnauthenticatedError):
        policy.check(head("PUT", authorization=f"Bearer {code}"))


def test_login_code_is_not_valid_at_a_later_socket_of_its_port() -> None:
    code = login_code(TOKEN, 8080, 1_000_000.0, "first")
    first, later = (
        AccessPolicy(TOKEN, listener=ListenerId(8080, "exp", one, one), now_s=lambda: 1_000_000.0)
        for one in ("first", "later")
    )

    assert first.log_in(head(), code)
    with pytest.raises(UnauthenticatedError):
        later.log_in(head(), code)


@pytest.mark.parametrize("given", [{}, {"authorization": "Bearer wrong"}, {"authorization": TOKEN}])
def test_changing_needs_the_token(given: dict[str, object]) -> None:
    with pytest.raises(UnauthenticatedError, match="token"):
        POLICY.check(head("PUT", **given))


def test_bearer_token_is_enough_to_change() -> None:
    POLICY.check(head("DELETE", authorization=f"Bearer {TOKEN}"))


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/x-www-form-urlencoded"])
def test_changing_with_another_type_than_json_is_refused(content_type: str) -> None:
    with pytest.raises(UnsupportedTypeError):
        POLICY.check(head("POST", content_type=content_type, authorization=f"Bearer {TOKEN}"))


def test_delete_without_body_needs_no_type() -> None:
    POLICY.check(head("DELETE", content_type="", has_body=False, authorization=f"Bearer {TOKEN}"))


def test_off_loopback_reading_needs_the_token_too() -> None:
    policy = AccessPolicy(TOKEN, reading_needs_token=True, allowed_hosts=frozenset({"box"}))

    policy.check(head(host="box:8080", authorization=f"Bearer {TOKEN}"))
    with pytest.raises(UnauthenticatedError):
        policy.check(head(host="box:8080"))


def test_off_loopback_any_host_is_accepted_and_the_page_is_open() -> None:
    policy = AccessPolicy(TOKEN, reading_needs_token=True)

    policy.check(head(host="10.1.2.3:8080", is_page=True))
    policy.check(head(host="box.example", cookie_token=policy.cookies.make("installation")))
    with pytest.raises(UnauthenticatedError):
        policy.check(head(host="box.example"))


def test_secrets_are_in_no_repr() -> None:
    shown = repr(POLICY) + repr(head("PUT", authorization=f"Bearer {TOKEN}", cookie_token=TOKEN))

    assert TOKEN not in shown


def test_empty_token_is_refused() -> None:
    with pytest.raises(ValueError, match="token"):
        AccessPolicy("")


def test_host_names_are_parsed_without_port_and_brackets() -> None:
    assert host_name("LocalHost:80") == "localhost"
    assert host_name("[::1]:80") == "::1"
    assert is_loopback("::1")
    assert not is_loopback("localhost.")


async def test_site_refuses_changes_of_strangers_as_json(site: Site) -> None:
    answer = await site.anonymous.put(f"{API}/experiment?update_type=MAX_TRIAL_NUM", json={})

    assert answer.status_code == 401
    assert "nnictl" in answer.json()["error"]


async def test_site_refuses_rebound_names(site: Site) -> None:
    answer = await site.client.get(f"{API}/experiment", headers={"Host": "evil.example"})

    assert answer.status_code == 403


async def test_site_refuses_forms(site: Site) -> None:
    answer = await site.client.post(f"{API}/trial-jobs", data={"x": "1"})

    assert answer.status_code == 415


async def test_every_response_has_browser_protections(site: Site) -> None:
    for path in ("/", f"{API}/experiment", f"{API}/nothing"):
        answer = await site.anonymous.get(path)

        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("policy", [POLICY, AccessPolicy(TOKEN, reading_needs_token=True)])
@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:80@evil.example",
        "127.0.0.1@evil.example:80",
        "localhost:80/evil.example",
        "localhost#evil.example",
        "[::1]evil.example",
        "127.0.0.1 evil.example",
        "127.0.0.1:80:80",
        "localhost:port",
    ],
)
def test_malformed_hosts_are_refused(policy: AccessPolicy, host: str) -> None:
    with pytest.raises(PermissionDeniedError, match="Host"):
        policy.check(head(host=host, authorization=f"Bearer {TOKEN}"))


def test_private_installation_refuses_rebound_names_and_reads_without_a_token() -> None:
    policy = AccessPolicy(TOKEN, reading_needs_token=True, private=True)

    with pytest.raises(UnauthenticatedError):
        policy.check(head())
    with pytest.raises(PermissionDeniedError, match="Host"):
        policy.check(head(host="evil.example", authorization=f"Bearer {TOKEN}"))
    policy.check(head(authorization=f"Bearer {TOKEN}"))
