"""Loopback addresses by which services know connections that came through the TLS front.

The front connects to a service from an address of 127.64.0.0/10 that is derived from the client's.
Failed calls are then counted by client, and callers from other machines keep the rights of agents
only. A process of this machine that connects from such an address only gives up rights.
"""

import hashlib
import ipaddress
from typing import Final

_NETWORK: Final = ipaddress.ip_network("127.64.0.0/10")


def front_source(client: str) -> str:
    """Return the address from which the front connects on behalf of a client.

    Args:
        client: address of the client, without port.
    """
    digest = int.from_bytes(hashlib.sha256(client.encode()).digest()[:4])
    return str(_NETWORK[digest % _NETWORK.num_addresses])


def came_through_front(address: str) -> bool:
    """Return whether a peer of a service has an address of `front_source`.

    Args:
        address: of the peer, without port.
    """
    try:
        return ipaddress.ip_address(address) in _NETWORK
    except ValueError:
        return False
