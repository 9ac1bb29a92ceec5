"""What several parts of the library, and those who extend it, have in common."""
