"""Golden arrays in .npz files, without pickle: strings and bfloat16 are stored as bytes with a note."""

from __future__ import annotations

import io
import json
import pathlib
import zipfile
from typing import Any

import ml_dtypes
import numpy as np


def save(path: pathlib.Path, data: dict[str, np.ndarray], meta: dict[str, Any]) -> None:
    """Writes arrays and a JSON description, the same bytes for the same content."""
    notes: dict[str, Any] = {}
    plain: dict[str, np.ndarray] = {}
    for name, array in data.items():
        if array.dtype == object:
            notes[name] = {"strings": [v.decode("latin-1") for v in array.ravel()], "shape": array.shape}
        elif array.dtype == ml_dtypes.bfloat16:
            notes[name] = {"bfloat16": True}
            plain[name] = array.view(np.uint16)
        else:
            plain[name] = array
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        entries = {f"{n}.npy": a for n, a in plain.items()}
        for name, array in sorted(entries.items()):
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.asanyarray(array), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(name), buffer.getvalue(), zipfile.ZIP_DEFLATED)
        text = json.dumps({"meta": meta, "notes": notes}, sort_keys=True)
        archive.writestr(zipfile.ZipInfo("index.json"), text, zipfile.ZIP_DEFLATED)


def load(path: pathlib.Path) -> tuple[dict[str, np.ndarray], Any]:
    """The arrays and the description of a golden file."""
    result: dict[str, np.ndarray] = {}
    with zipfile.ZipFile(path) as archive:
        index = json.loads(archive.read("index.json"))
        for name in archive.namelist():
            if name.endswith(".npy"):
                buffer = io.BytesIO(archive.read(name))
                result[name[:-4]] = np.lib.format.read_array(buffer, allow_pickle=False)
    for name, note in index["notes"].items():
        if "strings" in note:
            values = np.empty(len(note["strings"]), object)
            values[:] = [s.encode("latin-1") for s in note["strings"]]
            result[name] = values.reshape(note["shape"])
        else:
            result[name] = result[name].view(ml_dtypes.bfloat16)
    return result, index["meta"]
