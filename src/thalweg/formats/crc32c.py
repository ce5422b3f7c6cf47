"""Checksums of TensorFlow's files: CRC-32C (Castagnoli), and its masked form.

From the google-crc32c wheel: the processor's own instruction, 7 GB/s on pieces of 1 KB and 22 GB/s on large
ones, 0.07 us a call. A table in NumPy reaches 0.2 GB/s.
"""

from __future__ import annotations

from google_crc32c import extend, value

#: added to the rotated checksum, so that the checksum of data that holds checksums stays good
MASK = 0xA282EAD8


def crc32c(data: bytes) -> int:
    """The CRC-32C of some bytes."""
    return value(data)


def extend_crc32c(crc: int, data: bytes) -> int:
    """The CRC-32C of what `crc` is the checksum of, with data after it."""
    return extend(crc, data)


def mask(crc: int) -> int:
    """A checksum as TensorFlow's files store it."""
    return ((crc >> 15 | crc << 17) + MASK) & 0xFFFFFFFF


def unmask(masked: int) -> int:
    """The checksum that `mask` made this of."""
    rotated = (masked - MASK) & 0xFFFFFFFF
    return (rotated >> 17 | rotated << 15) & 0xFFFFFFFF


def masked_crc32c(data: bytes) -> int:
    """The masked CRC-32C of some bytes, as TFRecord files and checkpoints store it."""
    crc = value(data)
    return ((crc >> 15 | crc << 17) + MASK) & 0xFFFFFFFF
