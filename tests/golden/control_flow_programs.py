"""TF 1.x programs with branches and loops that run: all of them.

record_control_flow.py writes down what TensorFlow computes; tests/library/test_control_flow_programs.py compares.
"""

from __future__ import annotations

import array_programs
import branch_programs
import while_programs
from control_flow_case import PROGRAMS, run

__all__ = ["PROGRAMS", "array_programs", "branch_programs", "run", "while_programs"]
