"""Signatures: which tensors a model takes and gives. Source: TensorFlow's signature_def_utils_impl.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorboard.compat.proto import meta_graph_pb2

from thalweg.base import dtypes
from thalweg.graph.convert import get_default_graph
from thalweg.library.proto_functions import prepend_name_scope
from thalweg.library.saved_model import signature_constants as constants
from thalweg.library.saved_model.utils import build_tensor_info, build_tensor_info_from_op


def build_signature_def(
    inputs: Mapping[str, Any] | None = None,
    outputs: Mapping[str, Any] | None = None,
    method_name: str | None = None,
) -> Any:
    """A SignatureDef of TensorInfos by name."""
    signature = meta_graph_pb2.SignatureDef()
    for target, infos in ((signature.inputs, inputs), (signature.outputs, outputs)):
        for name, info in (infos or {}).items():
            target[name].CopyFrom(info)
    if method_name is not None:
        signature.method_name = method_name
    return signature


def predict_signature_def(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> Any:
    """The signature of a model that takes and gives any tensors. ValueError without inputs or outputs."""
    if not inputs:
        raise ValueError("Prediction inputs cannot be None or empty.")
    if not outputs:
        raise ValueError("Prediction outputs cannot be None or empty.")
    return build_signature_def(
        {key: build_tensor_info(t) for key, t in inputs.items()},
        {key: build_tensor_info(t) for key, t in outputs.items()},
        constants.PREDICT_METHOD_NAME,
    )


def regression_signature_def(examples: Any, predictions: Any) -> Any:
    """The signature of a model that gives numbers for serialized Examples.

    ValueError where examples are no strings, or predictions no floats.
    """
    if examples is None:
        raise ValueError("Regression `examples` cannot be None.")
    if predictions is None:
        raise ValueError("Regression `predictions` cannot be None.")
    _require(examples, dtypes.string, "Regression input tensors must be of type string")
    _require(predictions, dtypes.float32, "Regression output tensors must be of type float")
    return build_signature_def(
        {constants.REGRESS_INPUTS: build_tensor_info(examples)},
        {constants.REGRESS_OUTPUTS: build_tensor_info(predictions)},
        constants.REGRESS_METHOD_NAME,
    )


def classification_signature_def(examples: Any, classes: Any, scores: Any) -> Any:
    """The signature of a model that gives classes, scores or both for serialized Examples."""
    if examples is None:
        raise ValueError("Classification `examples` cannot be None.")
    if classes is None and scores is None:
        raise ValueError("Classification `classes` and `scores` cannot both be None.")
    _require(examples, dtypes.string, "Classification input tensors must be of type string")
    outputs = {}
    if classes is not None:
        _require(classes, dtypes.string, "Classification classes must be of type string Tensor")
        outputs[constants.CLASSIFY_OUTPUT_CLASSES] = build_tensor_info(classes)
    if scores is not None:
        _require(scores, dtypes.float32, "Classification scores must be a float tensor")
        outputs[constants.CLASSIFY_OUTPUT_SCORES] = build_tensor_info(scores)
    return build_signature_def(
        {constants.CLASSIFY_INPUTS: build_tensor_info(examples)}, outputs, constants.CLASSIFY_METHOD_NAME
    )


def _require(tensor: Any, dtype: dtypes.DType, message: str) -> None:
    if tensor.dtype.base_dtype != dtype:
        raise ValueError(f"{message}, got {tensor.dtype.name}")


_INFO = meta_graph_pb2.TensorInfo


def is_valid_signature(signature_def: Any) -> bool:
    """Whether a server could serve it: its inputs and outputs are what its method takes and gives."""
    if signature_def is None:
        return False
    method = signature_def.method_name
    if method == constants.PREDICT_METHOD_NAME:
        return bool(signature_def.inputs) and bool(signature_def.outputs)
    inputs, outputs = dict(signature_def.inputs), dict(signature_def.outputs)
    if set(inputs) != {"inputs"} or inputs["inputs"].dtype != dtypes.string.as_datatype_enum:
        return False
    if method == constants.REGRESS_METHOD_NAME:
        wanted = {constants.REGRESS_OUTPUTS: dtypes.float32}
        return set(outputs) == set(wanted) and _fit(outputs, wanted)
    if method == constants.CLASSIFY_METHOD_NAME:
        wanted = {
            constants.CLASSIFY_OUTPUT_CLASSES: dtypes.string,
            constants.CLASSIFY_OUTPUT_SCORES: dtypes.float32,
        }
        return bool(outputs) and set(outputs) <= set(wanted) and _fit(outputs, wanted)
    return False


def _fit(outputs: Mapping[str, Any], wanted: Mapping[str, dtypes.DType]) -> bool:
    return all(info.dtype == wanted[name].as_datatype_enum for name, info in outputs.items())


def op_signature_def(op: Any, key: str) -> Any:
    """The signature that names an operation under a key."""
    return build_signature_def(outputs={key: build_tensor_info_from_op(op)})


def load_op_from_signature_def(signature_def: Any, key: str, import_scope: str | None = None) -> Any:
    """The operation that a signature names under a key. KeyError where there is none."""
    name = prepend_name_scope(signature_def.outputs[key].name, import_scope)
    return get_default_graph().as_graph_element(name)
