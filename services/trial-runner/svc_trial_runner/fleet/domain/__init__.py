"""Rules of the fleet: names of agents, what to launch and what to end."""
