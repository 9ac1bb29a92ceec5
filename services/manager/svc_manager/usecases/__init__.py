"""What clients can ask for, whichever face they ask."""
