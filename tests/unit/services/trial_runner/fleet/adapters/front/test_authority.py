"""Tests of the authority of the TLS front."""

import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from svc_trial_runner.enrolment import FRONT_NAME, authority_fingerprint
from svc_trial_runner.fleet.adapters.front.authority import (
    CERTIFICATE_VALIDITY,
    RENEWED_BEFORE,
    needs_renewal,
    open_certificate,
)
from svc_trial_runner.fleet.ports import PlatformError

pytest.importorskip("cryptography")

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)


def test_authority_and_certificate_stay_across_restarts(tmp_path: Path) -> None:
    first = open_certificate(tmp_path / "front", NOW)

    assert open_certificate(tmp_path / "front", NOW) == first


def test_keys_are_readable_by_this_user_only(tmp_path: Path) -> None:
    open_certificate(tmp_path / "front", NOW)

    files = sorted((tmp_path / "front").iterdir())
    assert [file.name for file in files] == ["authority.key", "authority.pem", "certificate.pem"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE((tmp_path / "front").stat().st_mode) == 0o700


def test_certificate_is_renewed_before_its_end_by_the_same_authority(tmp_path: Path) -> None:
    first = open_certificate(tmp_path / "front", NOW)
    later = NOW + CERTIFICATE_VALIDITY - RENEWED_BEFORE

    assert not needs_renewal(first, later - timedelta(minutes=1))
    assert needs_renewal(first, later)
    second = open_certificate(tmp_path / "front", later)
    assert second.authority == first.authority
    assert second.expires_at == later + CERTIFICATE_VALIDITY


@pytest.mark.parametrize("now", [NOW - timedelta(days=400), NOW + timedelta(days=8000)])
def test_wrong_clock_is_said(tmp_path: Path, now: datetime) -> None:
    open_certificate(tmp_path / "front", NOW)

    with pytest.raises(PlatformError, match="the clock of this machine says") as caught:
        open_certificate(tmp_path / "front", now)

    assert "set the clock of this machine" in caught.value.remedy
    assert f"remove {tmp_path / 'front'}" in caught.value.remedy


def test_clock_that_was_set_back_by_a_month_gets_another_certificate(tmp_path: Path) -> None:
    open_certificate(tmp_path / "front", NOW)
    later = open_certificate(tmp_path / "front", NOW + timedelta(days=70))

    again = open_certificate(tmp_path / "front", NOW + timedelta(days=40))

    assert again.expires_at < later.expires_at


@pytest.mark.parametrize("name", ["authority.pem", "authority.key"])
def test_damaged_authority_is_set_aside_and_made_anew(tmp_path: Path, name: str) -> None:
    first = open_certificate(tmp_path / "front", NOW)
    (tmp_path / "front" / name).write_text("damaged")

    second = open_certificate(tmp_path / "front", NOW)

    assert second.authority != first.authority
    assert list((tmp_path / "front").glob(f"{name}.damaged-*"))


def test_certificate_of_another_authority_is_replaced(tmp_path: Path) -> None:
    open_certificate(tmp_path / "one", NOW)
    open_certificate(tmp_path / "two", NOW)
    foreign = (tmp_path / "one/certificate.pem").read_bytes()
    (tmp_path / "two/certificate.pem").write_bytes(foreign)

    open_certificate(tmp_path / "two", NOW)

    assert (tmp_path / "two/certificate.pem").read_bytes() != foreign


def test_kill_between_key_and_certificate_of_the_authority_is_mended(tmp_path: Path) -> None:
    open_certificate(tmp_path / "front", NOW)
    (tmp_path / "front/authority.pem").unlink()

    assert authority_fingerprint(open_certificate(tmp_path / "front", NOW).authority)


def test_fingerprint_is_that_of_the_certificate(tmp_path: Path) -> None:
    certificate = open_certificate(tmp_path / "front", NOW)

    assert len(authority_fingerprint(certificate.authority)) == 64
    with pytest.raises(ValueError, match="PEM"):
        authority_fingerprint("nothing")


def test_folder_that_cannot_be_written_is_an_error_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(PlatformError, match=f"cannot use {tmp_path}/file/front"):
        open_certificate(tmp_path / "file" / "front", NOW)


def test_certificate_that_cannot_be_read_is_an_error_of_the_platform(tmp_path: Path) -> None:
    certificate = open_certificate(tmp_path / "front", NOW)
    certificate.file.unlink()

    with pytest.raises(PlatformError, match=r"cannot use its certificate .*No such file"):
        certificate.server_context(["h2"])


def test_authority_signs_certificates_of_the_front_alone(tmp_path: Path) -> None:
    x509 = pytest.importorskip("cryptography.x509")
    opened = open_certificate(tmp_path / "front", NOW)

    authority = x509.load_pem_x509_certificate(opened.authority.encode())

    by_type = {type(one.value): one for one in authority.extensions}
    constraints, usage = by_type[x509.BasicConstraints], by_type[x509.KeyUsage]
    names = by_type[x509.NameConstraints]
    assert (constraints.value.ca, constraints.value.path_length) == (True, 0)
    assert (constraints.critical, usage.critical, names.critical) == (True, True, True)
    assert [name.value for name in names.value.permitted_subtrees] == [FRONT_NAME]
    assert uses(usage.value) == {"key_cert_sign", "crl_sign"}
    assert not by_type[x509.SubjectKeyIdentifier].critical
    assert authority.not_valid_before_utc == NOW - timedelta(days=1)
    assert authority.not_valid_after_utc == NOW + timedelta(days=7300)


def test_certificate_of_the_front_serves_tls_and_signs_nothing(tmp_path: Path) -> None:
    x509 = pytest.importorskip("cryptography.x509")
    opened = open_certificate(tmp_path / "front", NOW)

    certificate = x509.load_pem_x509_certificate(opened.file.read_bytes())

    by_type = {type(one.value): one for one in certificate.extensions}
    assert by_type[x509.BasicConstraints].value.ca is False
    assert uses(by_type[x509.KeyUsage].value) == {"digital_signature"}
    critical = {one.__name__ for one, extension in by_type.items() if extension.critical}
    assert critical == {"BasicConstraints", "KeyUsage"}
    assert certificate.not_valid_before_utc == NOW - timedelta(days=1)
    assert opened.expires_at == NOW + timedelta(days=90)


def uses(usage: Any) -> set[str]:
    """Return the names of the uses that a key is for."""
    names = (
        "digital_signature", "content_commitment", "key_encipherment", "data_encipherment",
        "key_agreement", "key_cert_sign", "crl_sign",
    )  # fmt: skip
    return {name for name in names if getattr(usage, name)}


def test_servers_refuse_old_versions_of_tls_and_renegotiation(tmp_path: Path) -> None:
    context = open_certificate(tmp_path / "front", NOW).server_context(["h2"])

    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.options & ssl.OP_NO_RENEGOTIATION
    assert context.options & ssl.OP_NO_COMPRESSION


def test_certificate_is_not_made_anew_while_it_is_fresh(tmp_path: Path) -> None:
    first = open_certificate(tmp_path / "front", NOW)
    content = first.file.read_bytes()

    for days in (-1, 0, 59):
        open_certificate(tmp_path / "front", NOW + timedelta(days=days))

    assert first.file.read_bytes() == content


@pytest.mark.parametrize(("now", "is_right"), [
    (NOW - timedelta(days=1), True),
    (NOW - timedelta(days=1, seconds=1), False),
    (NOW + timedelta(days=7300, seconds=-1), True),
    (NOW + timedelta(days=7300), False),
])  # fmt: skip
def test_clock_is_right_within_the_time_of_the_authority(
    tmp_path: Path, now: datetime, *, is_right: bool
) -> None:
    first = open_certificate(tmp_path / "front", NOW)

    if is_right:
        assert open_certificate(tmp_path / "front", now).authority == first.authority
    else:
        with pytest.raises(PlatformError, match="the clock of this machine says"):
            open_certificate(tmp_path / "front", now)


def test_certificate_with_the_key_of_another_one_is_replaced(tmp_path: Path) -> None:
    first = open_certificate(tmp_path / "front", NOW).file.read_text()
    (tmp_path / "front/certificate.pem").unlink()
    second = open_certificate(tmp_path / "front", NOW).file.read_text()
    mark = "-----BEGIN PRIVATE KEY-----"
    mixed = first.partition(mark)[0] + mark + second.partition(mark)[2]
    (tmp_path / "front/certificate.pem").write_text(mixed)

    assert open_certificate(tmp_path / "front", NOW).file.read_text() != mixed


def test_authority_with_the_key_of_another_one_is_set_aside(tmp_path: Path) -> None:
    first = open_certificate(tmp_path / "one", NOW)
    open_certificate(tmp_path / "two", NOW)
    (tmp_path / "one/authority.key").write_bytes((tmp_path / "two/authority.key").read_bytes())

    assert open_certificate(tmp_path / "one", NOW).authority != first.authority
    assert len(list((tmp_path / "one").glob("authority.*.damaged-*"))) == 2
