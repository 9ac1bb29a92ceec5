"""TLS front of the installation: the way in for agents on machines that do not reach loopback."""
