"""Who listens on a port."""

from __future__ import annotations

import os
import socket

from svc_manager.web.listeners.server import program_on_port


def test_listening_program_is_named_with_its_process() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()

        told = program_on_port(holder.getsockname()[1])

    assert f"(pid {os.getpid()})" in told


def test_port_of_nobody_is_told_as_nothing() -> None:
    with socket.socket() as bound:  # bound but not listening: the port is ours, and quiet
        bound.bind(("127.0.0.1", 0))

        assert program_on_port(bound.getsockname()[1]) == ""
