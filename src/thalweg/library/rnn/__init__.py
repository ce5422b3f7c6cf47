"""Recurrent nets: cells, wrappers of cells, and the loops that run them over sequences."""
