"""Super-modules, training and penalties of one-shot search with PyTorch."""
