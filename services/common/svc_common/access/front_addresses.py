"""Loopback addresses by which services know connections that came through the TLS front.

The front connects to a service from an address of 127.64.0.0/10 that is derived from the client's.
Failed calls are then counted by client, and callers from other machines keep the rights of agents
only. A process of this machine that connects from such an address only gives up rights.
"""

import hashlib
import ipaddress
from typing import Final

_NETWORK: Final = ipaddress.ip_network("127.64.0.0/10")
_HOST_BITS: Final = 64
"""Bits of an IPv6 address that a machine chooses itself."""


def counted_address(client: str) -> str:
    """Return the address to count a client by: the /64 network of an IPv6 one, else its own.

    A machine may use any address of its IPv6 network, so these count as one.

    Args:
        client: address of the client, without port.
    """
    address = _parsed(client)
    if not isinstance(address, ipaddress.IPv6Address):
        return client
    return str(ipaddress.IPv6Address(int(address) >> _HOST_BITS << _HOST_BITS))


def front_source(client: str) -> str:
    """Return the loopback address, a hash of the client's, from which the TLS front connects.

    Args:
        client: address of the client, without port.
    """
    digest = int.from_bytes(hashlib.sha256(counted_address(client).encode()).digest()[:4])
    return str(_NETWORK[digest % _NETWORK.num_addresses])


def came_through_front(address: str) -> bool:
    """Return whether a peer of a service has an address of `front_source`.

    Args:
        address: of the peer, without port.
    """
    found = _parsed(address)
    return found is not None and found in _NETWORK


def _parsed(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Parse an IP address, an IPv4-mapped IPv6 one as IPv4; None: it is not one."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return address if mapped is None else mapped
