"""tf.version: what the API is compatible with, and thalweg's own version."""

#: programs read it and expect a 1.x version
VERSION = "1.15.5"
GIT_VERSION = "thalweg"
COMPILER_VERSION = "XLA"
GRAPH_DEF_VERSION = 1882
GRAPH_DEF_VERSION_MIN_CONSUMER = 0
GRAPH_DEF_VERSION_MIN_PRODUCER = 0
THALWEG_VERSION = "0.1.0"
