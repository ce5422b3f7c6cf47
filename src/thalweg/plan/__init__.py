"""From a graph and a signature to an executable plan: passes, graph to graph, in the order of pipeline.py."""
