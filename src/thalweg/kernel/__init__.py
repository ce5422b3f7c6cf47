"""The kernel convention, checks inside kernels, and tracing a slice of a graph into one pure function."""
