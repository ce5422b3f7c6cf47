"""The graph: op definitions and their registry, nodes, tensors, scopes, text form, GraphDef."""
