"""Maths of masks, pure functions on tensors: blocks, metrics of blocks, and which blocks stay."""
