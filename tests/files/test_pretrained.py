"""A pretrained model made by others gives what it gives in TensorFlow (record_files_pretrained.py)."""

from __future__ import annotations

import importlib.util
import pathlib

import numpy as np

import thalweg as tf

ROOT = pathlib.Path(__file__).parents[2]


def test_basic_pitch(tmp_path: pathlib.Path) -> None:
    spec = importlib.util.spec_from_file_location("transcribe", ROOT / "examples" / "transcribe.py")
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    predictor = tf.saved_model.predictor.from_saved_model(example.unpack(str(tmp_path)))
    got = predictor({name: example.chord() for name in predictor.feed_tensors})
    with np.load(ROOT / "tests" / "golden" / "data" / "files" / "basic_pitch.npz") as expected:
        assert sorted(got) == sorted(expected.files)
        for name in expected.files:
            np.testing.assert_allclose(got[name][:, ::8], expected[name], atol=2e-5, err_msg=name)
