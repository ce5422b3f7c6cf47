"""A pretrained model that a package ships gives what it gives in TensorFlow (record_files_pretrained.py).

Needs the package: `pip install --no-deps basic-pitch`; or its SavedModel's folder in $THALWEG_BASIC_PITCH.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib

import numpy as np
import pytest

import thalweg as tf

ROOT = pathlib.Path(__file__).parents[2]


def test_basic_pitch() -> None:
    spec = importlib.util.spec_from_file_location("transcribe", ROOT / "examples" / "transcribe.py")
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    folder = os.environ.get("THALWEG_BASIC_PITCH") or example.installed()
    if folder is None:
        pytest.skip("basic-pitch is not installed")
    predictor = tf.saved_model.predictor.from_saved_model(folder)
    got = predictor({name: example.chord() for name in predictor.feed_tensors})
    with np.load(ROOT / "tests" / "golden" / "data" / "files" / "basic_pitch.npz") as expected:
        assert sorted(got) == sorted(expected.files)
        for name in expected.files:
            np.testing.assert_allclose(got[name][:, ::8], expected[name], atol=2e-5, err_msg=name)
