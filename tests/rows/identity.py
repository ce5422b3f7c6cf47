"""Rows of ops/identity.py."""

import numpy as np
from row import Row, floats, ints

NAN, INF = np.float32("nan"), np.float32("inf")

ROWS = [
    Row("Identity", [floats(2, 3)]),
    Row("Identity", [np.array([b"x", b"yz"], object)], id="strings"),
    Row("IdentityN", [[floats(2), ints(3)]]),
    Row("StopGradient", [floats(2)]),
    Row("PreventGradient", [floats(2)], {"message": "no"}, grad=()),
    Row("Snapshot", [floats(2)], grad=()),
    Row("CheckNumerics", [floats(2, 3)], {"message": "here"}),
    Row("CheckNumerics", [floats(2, dtype=np.float16)], {"message": "here"}, id="half"),
    Row("CheckNumerics", [np.array([1, NAN])], {"message": "here"}, id="nan", error="InvalidArgumentError"),
    Row("CheckNumerics", [np.array([1, -INF])], {"message": "here"}, id="inf", error="InvalidArgumentError"),
    Row("CheckNumerics", [np.array([NAN, INF])], {"message": "here"}, id="both", error="InvalidArgumentError"),
]
