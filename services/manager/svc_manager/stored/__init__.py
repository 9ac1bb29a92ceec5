"""The byte store: what lies in it, for whom, and what may go."""
