"""Who listens on a port of this machine, in words."""

from __future__ import annotations


def program_on_port(port: int) -> str:
    """Return e.g. `program nginx (pid 12)`; empty if the system does not tell.

    Reads the tables of sockets and of processes: some milliseconds, so call it in a thread.
    """
    import psutil

    try:
        found = [
            connection.pid
            for connection in psutil.net_connections(kind="tcp")
            if connection.status == psutil.CONN_LISTEN
            and connection.laddr
            and connection.laddr.port == port
        ]
        pid = next(filter(None, found), None)
        return f"program {psutil.Process(pid).name()} (pid {pid})" if pid else ""
    except psutil.Error:  # it has just ended, or belongs to somebody else
        return ""
