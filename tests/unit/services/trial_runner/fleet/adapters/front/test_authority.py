"""Tests of the authority of the TLS front."""

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from svc_trial_runner.enrolment import authority_fingerprint
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
