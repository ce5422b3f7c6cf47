"""Gradients: the reverse walk that extends the graph."""
