"""The agents: who is there, and what is wrong around them."""
