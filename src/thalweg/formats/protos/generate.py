"""Compiles the .proto files of this folder: `make protos`. Needs grpcio-tools; the results are committed.

Tensorboard's package has its messages compiled, not their .proto files, so protoc gets their descriptors.
"""

from __future__ import annotations

import pathlib
import sys
import tempfile

from google.protobuf import descriptor_pb2
from grpc_tools import protoc
from tensorboard.compat.proto import graph_pb2, meta_graph_pb2, tensor_pb2

FOLDER = pathlib.Path(__file__).parent
PACKAGE = "thalweg/formats/protos"


def _with_dependencies(files: list) -> descriptor_pb2.FileDescriptorSet:
    result = descriptor_pb2.FileDescriptorSet()
    seen = set()

    def add(file) -> None:
        if file.name in seen:
            return
        seen.add(file.name)
        for dependency in file.dependencies:
            add(dependency)
        file.CopyToProto(result.file.add())

    for file in files:
        add(file)
    return result


def main() -> int:
    """Compiles every .proto file of the folder; returns protoc's exit code."""
    source = FOLDER.parents[2]
    known = _with_dependencies([graph_pb2.DESCRIPTOR, meta_graph_pb2.DESCRIPTOR, tensor_pb2.DESCRIPTOR])
    with tempfile.NamedTemporaryFile(suffix=".pb") as descriptors:
        descriptors.write(known.SerializeToString())
        descriptors.flush()
        return protoc.main(
            [
                "protoc",
                f"--descriptor_set_in={descriptors.name}",
                f"--proto_path={source}",
                f"--python_out={source}",
                f"--pyi_out={source}",
                *sorted(f"{PACKAGE}/{file.name}" for file in FOLDER.glob("*.proto")),
            ]
        )


if __name__ == "__main__":
    sys.exit(main())
