"""Records, examples and pictures, against what TensorFlow gave (tests/golden/record_files_records.py)."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import numpy as np
import pytest

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"
sys.path.insert(0, str(GOLDEN))

import arrays  # noqa: E402
import record_programs as programs  # noqa: E402

import thalweg as tf  # noqa: E402

FILES = GOLDEN / "data" / "files"
RECORDED, _ = arrays.load(FILES / "records.npz")
DECODED, _ = arrays.load(FILES / "pictures_decoded.npz")
with np.load(FILES / "pictures.npz") as data:
    PICTURES = {name: data[name].tobytes() for name in data.files}


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_program(name: str) -> None:
    with tf.Graph().as_default():
        got = programs.PROGRAMS[name](tf, FILES)
    want = {k.partition("/")[2]: v for k, v in RECORDED.items() if k.startswith(f"{name}/")}
    assert got.keys() == want.keys()
    for key, value in got.items():
        array = np.asarray(value)
        assert array.dtype == want[key].dtype or array.dtype.kind in "OS", key
        np.testing.assert_array_equal(array, want[key], key)


def decoded(name: str, op: str, options: dict[str, Any]) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        options = {k: getattr(tf, v) if k == "dtype" else v for k, v in options.items()}
        try:
            return session.run(getattr(tf.image, op)(PICTURES[name], **options))
        except tf.errors.OpError as e:
            return np.array(type(e).__name__.encode(), object)


#: where colours are stored for several pixels, TensorFlow's fast transform isn't to be had: how much may differ, of
#: 255, at any pixel and on average
MOST, MEAN = 4, 1.2
SPREAD = ("rgb.jpg", "rgb422.jpg", "progressive.jpg", "restart.jpg")


@pytest.mark.parametrize("case", list(programs.decodings(PICTURES)), ids=lambda c: programs.label(*c))
def test_picture(case: tuple[str, str, dict[str, Any]]) -> None:
    name, _, options = case
    want = DECODED[programs.label(*case)]
    got = decoded(*case)
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    if name in SPREAD and (not options or "crop_window" in options):
        difference = np.abs(got.astype(int) - want)
        assert difference.max() <= MOST
        assert difference.mean() <= MEAN
    elif name in ("grey1.png", "grey2.png", "grey4.png", "palette4.png") and options.get("channels") == 4:
        np.testing.assert_array_equal(got[..., :3], want[..., :3])
        assert (got[..., 3] == 255).all()  # TensorFlow: 1, 3 or 15, as wide as the picture's samples
    elif want.dtype == np.float32:
        np.testing.assert_allclose(got, want, rtol=1e-6)
    else:
        np.testing.assert_array_equal(got, want)
