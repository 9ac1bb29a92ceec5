"""Use cases of the manager: each calls the actors, stores and rules of one request in order."""
