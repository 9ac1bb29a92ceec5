"""Platform of agents that people have started on their machines."""
