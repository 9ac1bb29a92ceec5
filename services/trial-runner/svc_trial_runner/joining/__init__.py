"""Agent that a person starts: it enrols at the TLS front, then works as any other."""
