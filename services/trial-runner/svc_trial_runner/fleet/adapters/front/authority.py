"""Authority of the TLS front: its key and certificate, and the certificates that it signs.

The authority belongs to one installation and signs for one name only, so that a client that trusts
it needs no address in the certificate. The package `cryptography` is imported here, and only when a
front is opened.
"""

import ssl
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from svc_common.durable_files import write_private
from svc_common.own_files import private_folder, set_aside
from svc_trial_runner.enrolment import FRONT_NAME
from svc_trial_runner.fleet.ports import PlatformError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

AUTHORITY_VALIDITY: Final = timedelta(days=7300)
"""20 years: agents cannot connect once it has expired, and have to enrol with another one."""
CERTIFICATE_VALIDITY: Final = timedelta(days=90)
RENEWED_BEFORE: Final = timedelta(days=30)
"""A certificate is replaced so long before its end."""
CLOCK_TOLERANCE: Final = timedelta(days=1)
"""Certificates are valid from so long ago: clocks of other machines may be behind."""
_AUTHORITY: Final = "authority.pem"
_AUTHORITY_KEY: Final = "authority.key"
_CERTIFICATE: Final = "certificate.pem"
_REMEDY: Final = "pip install 'nni-svc-trial-runner[front]' where NNI's services are installed"


@dataclass(frozen=True, slots=True)
class FrontCertificate:
    """Certificate of the TLS front, in a file with its key, and the authority that signed it."""

    file: Path
    """Certificate and key in PEM, readable by this user only."""
    expires_at: datetime
    authority: str
    """Certificate in PEM."""

    def server_context(self, protocols: list[str]) -> ssl.SSLContext:
        """Return a context of TLS servers that offer these ALPN protocols.

        Raises:
            PlatformError: the file cannot be read.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION
        try:
            context.load_cert_chain(self.file)
        except OSError as error:  # also of TLS
            raise PlatformError(
                f"the TLS front cannot use its certificate {self.file}: {error}"
            ) from error
        context.set_alpn_protocols(protocols)
        return context


def open_certificate(folder: Path, now: datetime) -> FrontCertificate:
    """Return a certificate that is valid for some weeks; make authority or certificate if missing.

    Damaged files are renamed: agents that trust the authority in them have to enrol again.

    Args:
        folder: of the front, private; created if missing.
        now: present time, aware.

    Raises:
        PlatformError: `cryptography` is missing, the clock is wrong, or a file cannot be written.
    """
    try:
        from cryptography import x509
    except ImportError as error:
        raise PlatformError(
            f"the TLS front needs a package that is not installed: {error}", _REMEDY, permanent=True
        ) from error
    try:
        private_folder(folder)
        authority, key = _open_authority(folder, now)
        _check_clock(authority, now, folder)
        file = folder / _CERTIFICATE
        known = _read_certificate(file, authority)
        if known is None or not _is_fresh(known, now):
            known = _issue(file, authority, key, now)
    except OSError as error:
        raise PlatformError(
            f"the TLS front cannot use {folder}: {error.strerror}", "make room on its disk"
        ) from error
    assert isinstance(known, x509.Certificate)
    return FrontCertificate(file, known.not_valid_after_utc, _pem(authority))


def needs_renewal(certificate: FrontCertificate, now: datetime) -> bool:
    """Return whether a certificate has to be replaced."""
    return now >= certificate.expires_at - RENEWED_BEFORE


def _open_authority(
    folder: Path, now: datetime
) -> tuple["x509.Certificate", "EllipticCurvePrivateKey"]:
    """Return authority and key as read, else newly made and written; rename damaged files."""
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from cryptography.x509 import load_pem_x509_certificate

    file, key_file = folder / _AUTHORITY, folder / _AUTHORITY_KEY
    try:
        authority = load_pem_x509_certificate(file.read_bytes())
        key = load_pem_private_key(key_file.read_bytes(), None)
        if isinstance(key, ec.EllipticCurvePrivateKey) and key.public_key() == (
            authority.public_key()
        ):
            return authority, key
        reason = "certificate and key of the authority must belong together"
    except FileNotFoundError:
        reason = ""  # a first start, or a kill between the two files
    except (ValueError, TypeError) as error:  # TypeError: the key is encrypted
        reason = f"must be in PEM: {error}"
    if reason:
        set_aside(file, reason)
        set_aside(key_file, reason)
    key = ec.generate_private_key(ec.SECP256R1())
    authority = _authority_certificate(key, now)
    write_private(key_file, _key_pem(key))
    write_private(file, _pem(authority))
    return authority, key


def _authority_certificate(key: "EllipticCurvePrivateKey", now: datetime) -> "x509.Certificate":
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    name = _name(f"{FRONT_NAME} authority")
    allowed = x509.NameConstraints(
        permitted_subtrees=[x509.DNSName(FRONT_NAME)], excluded_subtrees=None
    )
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_TOLERANCE)
        .not_valid_after(now + AUTHORITY_VALIDITY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs=True), critical=True)
        .add_extension(allowed, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def _issue(
    file: Path, authority: "x509.Certificate", key: "EllipticCurvePrivateKey", now: datetime
) -> "x509.Certificate":
    """Make key and certificate of the TLS front, and write both to a file."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID

    own = ec.generate_private_key(ec.SECP256R1())
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())
    certificate = (
        x509.CertificateBuilder()
        .subject_name(_name(FRONT_NAME))
        .issuer_name(authority.subject)
        .public_key(own.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(max(now - CLOCK_TOLERANCE, authority.not_valid_before_utc))
        .not_valid_after(min(now + CERTIFICATE_VALIDITY, authority.not_valid_after_utc))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(FRONT_NAME)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(identifier, critical=False)
        .sign(key, hashes.SHA256())
    )
    write_private(file, _pem(certificate) + _key_pem(own))
    return certificate


def _read_certificate(file: Path, authority: "x509.Certificate") -> "x509.Certificate | None":
    """Return a file's certificate if its key fits and this authority has signed it; else None."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from cryptography.x509 import load_pem_x509_certificate

    try:
        content = file.read_bytes()
        certificate = load_pem_x509_certificate(content)
        key = load_pem_private_key(content, None)
        certificate.verify_directly_issued_by(authority)
    except (FileNotFoundError, ValueError, TypeError, InvalidSignature):
        return None
    return certificate if key.public_key() == certificate.public_key() else None


def _is_fresh(certificate: "x509.Certificate", now: datetime) -> bool:
    begun = certificate.not_valid_before_utc <= now
    return begun and now < certificate.not_valid_after_utc - RENEWED_BEFORE


def _check_clock(authority: "x509.Certificate", now: datetime, folder: Path) -> None:
    begin, end = authority.not_valid_before_utc, authority.not_valid_after_utc
    if begin <= now < end:
        return
    raise PlatformError(
        f"the clock of this machine says {now:%Y-%m-%d %H:%M} UTC, and the authority of the TLS "
        f"front is valid from {begin:%Y-%m-%d} to {end:%Y-%m-%d}",
        f"set the clock of this machine; if it is right, remove {folder} and invite all machines "
        "again",
    )


def _key_usage(*, signs: bool) -> "x509.KeyUsage":
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str) -> "x509.Name":
    from cryptography import x509

    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name)])


def _pem(certificate: "x509.Certificate") -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM).decode("ascii")


def _key_pem(key: "EllipticCurvePrivateKey") -> str:
    from cryptography.hazmat.primitives import serialization

    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode("ascii")
