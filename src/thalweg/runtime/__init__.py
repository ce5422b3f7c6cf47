"""Running a plan: master, worker state, resources, the executor, clusters as XLA executables."""
