"""GIF, all frames. Source: TensorFlow's gif_io.cc, and the GIF89a specification."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thalweg.formats.images import ImageError, decode

#: all frames together may be so large, or so many times the file
_MOST_BYTES = 64 << 20
_MOST_PER_BYTE = 4096


@dataclass(frozen=True)
class _Frame:
    left: int
    top: int
    width: int
    height: int
    interlaced: bool
    bits: int
    colors: np.ndarray
    transparent: int
    data: bytes


class _Ended(Exception):
    """The file ends in the middle."""


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 6

    def take(self, n: int) -> bytes:
        part = self.data[self.at : self.at + n]
        if len(part) < n:
            raise _Ended
        self.at += n
        return part

    def colors(self, flags: int) -> np.ndarray | None:
        if not flags & 0x80:
            return None
        return np.frombuffer(self.take(3 << ((flags & 7) + 1)), np.uint8).reshape(-1, 3)

    def blocks(self) -> bytes:
        """Sub-blocks with their sizes, up to the one that ends them."""
        start = self.at
        while (size := self.take(1)[0]) != 0:
            self.take(size)
        return self.data[start : self.at]


def decode_gif(data: bytes, only_first: bool = False) -> np.ndarray:
    """[frames, height, width, 3], uint8: each frame over what the one before left."""
    reader = _Reader(data)
    try:
        screen = reader.take(7)
        common = reader.colors(screen[4])
    except _Ended:
        raise ImageError(f"Invalid GIF data, size {len(data)}") from None
    size = screen[0] | screen[1] << 8, screen[2] | screen[3] << 8
    frames = _frames(reader, common, only_first)
    if not frames:
        raise ImageError(f"Invalid GIF data, size {len(data)}: it has no frame")
    first = frames[0]
    width, height = size
    if not width or not height:  # as some writers leave it
        width, height = first.width, first.height
    widest = max(f.left + f.width for f in frames)
    tallest = max(f.top + f.height for f in frames)
    width, height = min(width, widest), min(height, tallest)
    total = len(frames) * width * height * 3
    if total > max(_MOST_BYTES, _MOST_PER_BYTE * len(data)):
        raise ImageError(
            f"Invalid GIF data, size {len(data)}: {len(frames)} frames of {width} x {height} pixels"
        )
    result = np.zeros((len(frames), height, width, 3), np.uint8)
    for k, frame in enumerate(frames):
        if k:
            result[k] = result[k - 1]
        _draw(frame, result[k], k)
    return result


def _frames(reader: _Reader, common: np.ndarray | None, only_first: bool) -> list[_Frame]:
    frames: list[_Frame] = []
    transparent = -1
    try:
        while not (only_first and frames):
            kind = reader.take(1)[0]
            if kind == 0x3B:
                break
            if kind == 0x21:
                label = reader.take(1)[0]
                blocks = reader.blocks()
                if label == 0xF9 and len(blocks) >= 5:
                    transparent = blocks[4] if blocks[1] & 1 else -1
            elif kind == 0x2C:
                frames.append(_frame(reader, common, transparent, len(frames)))
                transparent = -1
            elif frames:
                break  # something else follows: the frames before it count
            else:
                raise ImageError(f"Invalid GIF data, size {len(reader.data)}: byte {reader.at - 1} is {kind}")
    except _Ended:  # frames that are whole count
        if not frames:
            raise ImageError(f"Invalid GIF data, size {len(reader.data)}: it ends early") from None
    return frames


def _frame(reader: _Reader, common: np.ndarray | None, transparent: int, k: int) -> _Frame:
    place = reader.take(9)
    left, top, width, height = (place[i] | place[i + 1] << 8 for i in (0, 2, 4, 6))
    own = reader.colors(place[8])
    colors = common if own is None else own
    bits = reader.take(1)[0]
    blocks = reader.blocks()
    if colors is None:
        raise ImageError(f"missing color map for frame {k}")
    if not 1 <= bits <= 11 or not width or not height:
        raise ImageError(f"Invalid GIF data: frame {k} has {width} x {height} pixels of {bits} bits")
    if width * height > max(_MOST_BYTES, _MOST_PER_BYTE * len(blocks)):
        raise ImageError(f"Invalid GIF data: frame {k} claims to be {width} x {height} pixels")
    return _Frame(left, top, width, height, bool(place[8] & 0x40), bits, colors, transparent, blocks)


def _draw(frame: _Frame, canvas: np.ndarray, k: int) -> None:
    indices = decode(
        "gif", "L", frame.width, frame.height, frame.data, (frame.bits, int(frame.interlaced), -1)
    )[..., 0]
    target = canvas[frame.top : frame.top + frame.height, frame.left : frame.left + frame.width]
    indices = indices[: target.shape[0], : target.shape[1]]
    visible = indices != frame.transparent
    if indices.size and int(indices[visible].max(initial=0)) >= len(frame.colors):
        raise ImageError(
            f"found color index {indices[visible].max()} outside of color map range of frame {k}"
        )
    target[visible] = frame.colors[indices[visible]]
