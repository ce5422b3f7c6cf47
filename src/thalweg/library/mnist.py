"""`tensorflow.examples.tutorials.mnist.input_data`: read_data_sets over MNIST's own files.

Nothing is downloaded: the four files (train-images-idx3-ubyte.gz ..., packed or not) lie in `train_dir`.
"""

from __future__ import annotations

import collections
import gzip
import os
import sys
from typing import Any

import numpy as np

from thalweg.base import errors

Datasets = collections.namedtuple("Datasets", ["train", "validation", "test"])

_FILES = {
    "train_images": "train-images-idx3-ubyte",
    "train_labels": "train-labels-idx1-ubyte",
    "test_images": "t10k-images-idx3-ubyte",
    "test_labels": "t10k-labels-idx1-ubyte",
}


def _read_idx(train_dir: str, name: str) -> np.ndarray:
    """An IDX file as an array of uint8. NotFoundError, DataLossError."""
    for path, opener in (
        (os.path.join(train_dir, name + ".gz"), gzip.open),
        (os.path.join(train_dir, name), open),
    ):
        if os.path.exists(path):
            with opener(path, "rb") as f:
                data = f.read()
            break
    else:
        raise errors.NotFoundError(
            None,
            None,
            f"{name}(.gz) is not in '{train_dir}': put MNIST's four files there (nothing is downloaded)",
        )
    if len(data) < 4 or data[:3] != b"\x00\x00\x08":
        raise errors.DataLossError(None, None, f"{path} is not an IDX file of bytes")
    rank = data[3]
    shape = tuple(int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big") for i in range(rank))
    body = np.frombuffer(data, np.uint8, offset=4 + 4 * rank)
    if body.size != int(np.prod(shape)):
        raise errors.DataLossError(None, None, f"{path} says {shape} and has {body.size} bytes")
    return body.reshape(shape)


def dense_to_one_hot(labels_dense: np.ndarray, num_classes: int) -> np.ndarray:
    """Class numbers as rows with a single one."""
    return np.eye(num_classes)[labels_dense]


class DataSet:
    """Images and labels, in batches."""

    def __init__(
        self,
        images: np.ndarray,
        labels: np.ndarray,
        fake_data: bool = False,
        one_hot: bool = False,
        dtype: Any = np.float32,
        reshape: bool = True,
        seed: int | None = None,
    ) -> None:
        """images: uint8 [n, 28, 28, 1]; scaled to [0, 1] for a float dtype, flattened with `reshape`."""
        del fake_data, one_hot
        if reshape:
            images = images.reshape(images.shape[0], -1)
        kind = np.dtype(getattr(dtype, "as_numpy_dtype", dtype))
        self._images = images.astype(kind) * kind.type(1.0 / 255.0) if kind.kind == "f" else images
        self._labels = labels
        self._random = np.random.RandomState(seed)
        self._epochs = 0
        self._at = 0

    @property
    def images(self) -> np.ndarray:
        """All images."""
        return self._images

    @property
    def labels(self) -> np.ndarray:
        """All labels."""
        return self._labels

    @property
    def num_examples(self) -> int:
        """How many there are."""
        return len(self._images)

    @property
    def epochs_completed(self) -> int:
        """How often all of them have been given out."""
        return self._epochs

    def _shuffle(self) -> None:
        order = self._random.permutation(self.num_examples)
        self._images, self._labels = self._images[order], self._labels[order]

    def next_batch(
        self, batch_size: int, fake_data: bool = False, shuffle: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        """The next images and labels; from one epoch into the next where they end."""
        del fake_data
        if self._at == 0 and self._epochs == 0 and shuffle:
            self._shuffle()
        start = self._at
        if start + batch_size <= self.num_examples:
            self._at += batch_size
            return self._images[start : self._at], self._labels[start : self._at]
        self._epochs += 1
        rest = self._images[start:], self._labels[start:]
        if shuffle:
            self._shuffle()
        self._at = batch_size - len(rest[0])
        return (
            np.concatenate([rest[0], self._images[: self._at]]),
            np.concatenate([rest[1], self._labels[: self._at]]),
        )


def read_data_sets(
    train_dir: str,
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: Any = np.float32,
    reshape: bool = True,
    validation_size: int = 5000,
    seed: int | None = None,
    source_url: str = "",
) -> Any:
    """MNIST as (train, validation, test) from the files in `train_dir`."""
    del fake_data, source_url
    arrays = {key: _read_idx(train_dir, name) for key, name in _FILES.items()}
    labels = {k: arrays[f"{k}_labels"] for k in ("train", "test")}
    if one_hot:
        labels = {k: dense_to_one_hot(v, 10) for k, v in labels.items()}
    images = {k: arrays[f"{k}_images"][..., None] for k in ("train", "test")}
    if not 0 <= validation_size <= len(images["train"]):
        raise ValueError(
            f"Validation size should be between 0 and {len(images['train'])}. Received: {validation_size}."
        )
    options = {"dtype": dtype, "reshape": reshape, "seed": seed}
    cut = validation_size
    return Datasets(
        train=DataSet(images["train"][cut:], labels["train"][cut:], **options),
        validation=DataSet(images["train"][:cut], labels["train"][:cut], **options),
        test=DataSet(images["test"], labels["test"], **options),
    )


#: `from tensorflow.examples.tutorials.mnist import input_data` finds this module under that name
input_data = sys.modules[__name__]
mnist = input_data
