"""Rewrites: graph to graph, same results up to rounding. Each can be switched off."""
