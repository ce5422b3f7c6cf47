"""Leaves of the system: errors, element types, shapes, device names, nests, source origins."""
