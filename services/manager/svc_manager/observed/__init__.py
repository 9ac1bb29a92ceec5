"""What the manager tells of itself: figures and traces."""
