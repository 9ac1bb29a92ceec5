"""HTTP listeners: sockets, access rules, the route table and the page, as ASGI applications."""
