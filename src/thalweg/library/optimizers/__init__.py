"""Optimizers: Optimizer, which others derive from, and one rule of training a file."""
