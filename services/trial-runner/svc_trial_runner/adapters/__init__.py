"""How the agent touches the machine it runs on."""
