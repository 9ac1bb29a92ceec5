"""Policy that learns to choose models, and the game that it plays."""
