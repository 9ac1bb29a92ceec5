"""Certificate authority of one test, with certificates for this machine."""

from dataclasses import dataclass
from pathlib import Path

import trustme

from svc_common.access.security import SecuritySettings
from svc_common.access.transport import Transport

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Certificate:
    """Files of a certificate and its key."""

    certificate: Path
    key: Path


class Authority:
    """Certificate authority; `ca` is its own certificate."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._authority = trustme.CA()
        self.ca = folder / f"{name}.pem"
        self._authority.cert_pem.write_to_path(str(self.ca))

    def sign(self, common_name: str, *names: str) -> Certificate:
        """Return a new certificate for ``names`` (default: those of this machine)."""
        made = self._authority.issue_cert(*(names or LOCAL_NAMES), common_name=common_name)
        found = Certificate(
            self._folder / f"{common_name}.pem", self._folder / f"{common_name}.key"
        )
        found.certificate.write_bytes(b"".join(one.bytes() for one in made.cert_chain_pems))
        made.private_key_pem.write_to_path(str(found.key))
        found.key.chmod(0o600)
        return found

    def security(self, *, client_ca: bool = False) -> SecuritySettings:
        """Return the settings of a service with a certificate of this authority."""
        own = self.sign("service")
        return SecuritySettings(
            Transport(
                certificate=own.certificate,
                key=own.key,
                client_ca=self.ca if client_ca else None,
                ca=self.ca,
            )
        )

    def nats_tls(self, *, handshake_first: bool = False) -> str:
        """Return the `tls` block of a nats-server's configuration."""
        own = self.sign("nats")
        first = "handshake_first: true\n" if handshake_first else ""
        return f'tls {{\n cert_file: "{own.certificate}"\n key_file: "{own.key}"\n{first}}}\n'
