"""Bytes in files: checksums, tables, checkpoints, records. Knows nothing of graphs, and nothing of jax."""
