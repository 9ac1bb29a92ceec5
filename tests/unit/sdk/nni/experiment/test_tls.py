"""What HTTPS with services of another machine insists on."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from nni.experiment.environment import RemoteSettings
from nni.experiment.errors import RefusedError
from nni.experiment.tls import tls_context


def test_certificates_are_checked_and_old_versions_refused() -> None:
    context = tls_context(RemoteSettings(url="https://box", token="t"))

    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize(("authority", "own"), [("empty.pem", ""), ("", "empty.pem")])
def test_file_that_is_no_certificate_is_refused_by_its_name(
    authority: str, own: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty.pem").write_text("")
    monkeypatch.chdir(tmp_path)

    with pytest.raises(RefusedError, match=r"cannot be used .*empty\.pem"):
        tls_context(RemoteSettings(url="https://box", ca_file=authority, certificate=own))
