"""TLS front: the installation's TLS reverse proxy, by which agents on other machines connect."""
