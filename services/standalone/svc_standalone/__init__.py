"""Everything on one machine: the bus and the services as children of one supervisor."""
