"""Platform `ray`: agents in detached actors of an existing Ray cluster."""
