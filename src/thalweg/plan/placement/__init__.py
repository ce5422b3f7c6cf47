"""Placement: which device each node runs on, chosen by simulating the step. docs/placement.md explains it."""
