"""Op rows: for each op a few calls with literal inputs, as data.

A row knows nothing of thalweg or TensorFlow. tests/golden/record_ops.py runs the rows on TensorFlow and
stores what came out; tests/ops/test_rows.py runs them on thalweg and compares, five ways.
"""
