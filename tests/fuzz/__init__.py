"""Readers of files against broken input: whatever the bytes are, only tf.errors come out. See driver.py."""
