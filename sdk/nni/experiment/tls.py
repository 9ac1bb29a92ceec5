"""TLS settings for services on another machine."""

from __future__ import annotations

import ssl

from nni.experiment.environment import RemoteSettings
from nni.experiment.errors import RefusedError


def tls_context(settings: RemoteSettings) -> ssl.SSLContext:
    """Return a TLS context, >= 1.2, with the user's authority and certificate; or RefusedError.

    Raises:
        RefusedError: a file cannot be used.
    """
    try:
        context = ssl.create_default_context(cafile=settings.ca_file or None)
        if settings.certificate:
            context.load_cert_chain(settings.certificate, settings.key)
    except (OSError, ssl.SSLError) as error:
        files = ", ".join(filter(None, (settings.ca_file, settings.certificate, settings.key)))
        raise RefusedError(f"the certificates cannot be used ({error}): {files}") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
