"""`import tensorflow` as thalweg, for scripts that are run unchanged.

`tensorflow`, `tensorflow.compat.v1` and the public submodules are thalweg's namespaces. Modules under
`tensorflow.python` and `tensorflow.core` that programs commonly import become modules whose names are
looked up in thalweg. Whatever is missing says which name it was and what comes near.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.abc
import importlib.machinery
import pkgutil
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import thalweg
import thalweg.library
from thalweg.graph import registry
from thalweg.graph.emitter import emit
from thalweg.library.missing import NOT_PART

#: modules of tensorflow.python whose names are found in these modules first
_HOMES: dict[str, tuple[str, ...]] = {
    "framework.dtypes": ("thalweg.base.dtypes",),
    "framework.errors": ("thalweg.errors",),
    "framework.errors_impl": ("thalweg.errors",),
    "framework.tensor_shape": ("thalweg.base.tensor_shape",),
    "framework.ops": ("thalweg.library.framework", "thalweg.graph.composite", "thalweg.graph.convert"),
    "framework.constant_op": ("thalweg",),
    "framework.tensor_util": ("thalweg.graph.tensor_proto", "thalweg.graph.shape_context", "thalweg"),
    "framework.sparse_tensor": ("thalweg.graph.composite",),
    "framework.random_seed": ("thalweg.library.random_seed", "thalweg"),
    "framework.graph_io": ("thalweg.library.graph_io",),
    "framework.graph_util": ("thalweg.graph_util",),
    "framework.graph_util_impl": ("thalweg.graph_util",),
    "framework.importer": ("thalweg.graph.importer",),
    "framework.meta_graph": ("thalweg.library.meta_graph", "thalweg.library.proto_functions"),
    "framework.device": ("thalweg.base.device_name",),
    "client.session": ("thalweg.client.session",),
    "client.device_lib": ("thalweg.client.device_lib",),
    "client.timeline": ("thalweg.library.timeline",),
    "util.nest": ("thalweg.base.nest",),
    "util.compat": ("thalweg.library.compat",),
    "platform.gfile": ("thalweg.gfile",),
    "platform.tf_logging": ("thalweg.logging",),
    "platform.app": ("thalweg.app",),
    "platform.flags": ("thalweg.flags",),
    "platform.test": ("thalweg.test",),
    "ops.init_ops": ("thalweg.initializers", "thalweg"),
    "ops.nn": ("thalweg.nn",),
    "ops.nn_ops": ("thalweg.nn",),
    "ops.nn_impl": ("thalweg.nn",),
    "ops.embedding_ops": ("thalweg.nn",),
    "training.device_setter": ("thalweg.library.device_setter",),
    "training.server_lib": ("thalweg.base.cluster_spec",),
    "summary.summary": ("thalweg.summary",),
    "training.training": ("thalweg.train",),
    "training.saver": (
        "thalweg.library.saver",
        "thalweg.library.saver_builder",
        "thalweg.library.checkpoint_state",
        "thalweg.library.meta_graph_import",
    ),
    "training.checkpoint_management": ("thalweg.library.checkpoint_state",),
    "training.checkpoint_utils": ("thalweg.library.checkpoint_utils",),
    "training.checkpoint_state_pb2": ("thalweg.formats.protos.checkpoint_pb2",),
    "training.py_checkpoint_reader": ("thalweg.library.checkpoint_utils",),
    "training.saving.saveable_object": ("thalweg.library.saveables",),
    "training.saving.saveable_object_util": ("thalweg.library.saveables",),
    "pywrap_tensorflow": ("thalweg.library.checkpoint_utils",),
    "saved_model.saved_model": ("thalweg.saved_model",),
    **{
        f"saved_model.{name}": (f"thalweg.library.saved_model.{name.removesuffix('_impl')}",)
        for name in (
            "builder",
            "builder_impl",
            "constants",
            "loader",
            "loader_impl",
            "main_op",
            "main_op_impl",
            "signature_constants",
            "signature_def_utils",
            "signature_def_utils_impl",
            "simple_save",
            "tag_constants",
            "utils",
            "utils_impl",
        )
    },
}

#: further modules of tensorflow.python whose names are found in thalweg's public and library modules
_PLAIN = [
    "framework.common_shapes",
    "framework.function",
    "ops.array_ops",
    "ops.math_ops",
    "ops.check_ops",
    "ops.clip_ops",
    "ops.control_flow_ops",
    "ops.control_flow_util",
    "ops.custom_gradient",
    "ops.gradients",
    "ops.gradients_impl",
    "ops.linalg_ops",
    "ops.logging_ops",
    "ops.losses.losses",
    "ops.partitioned_variables",
    "ops.random_ops",
    "ops.resource_variable_ops",
    "ops.script_ops",
    "ops.sparse_ops",
    "ops.special_math_ops",
    "ops.standard_ops",
    "ops.state_ops",
    "ops.template",
    "ops.variable_scope",
    "ops.variables",
    "ops.gen_array_ops",
    "ops.gen_io_ops",
    "ops.gen_math_ops",
    "ops.gen_nn_ops",
    "ops.gen_state_ops",
    "ops.gen_random_ops",
    "ops.gen_training_ops",
    "ops.gen_resource_variable_ops",
    "training.optimizer",
    "training.adam",
    "training.adagrad",
    "training.adadelta",
    "training.momentum",
    "training.rmsprop",
    "training.ftrl",
    "training.gradient_descent",
    "training.slot_creator",
    "training.training_util",
    "training.basic_loops",
    "training.basic_session_run_hooks",
    "training.coordinator",
    "training.monitored_session",
    "training.queue_runner",
    "training.queue_runner_impl",
    "training.session_manager",
    "training.session_run_hook",
    "training.supervisor",
    "training.moving_averages",
    "training.learning_rate_decay",
    "util.deprecation",
    "util.tf_export",
    "util.tf_inspect",
    "util.tf_decorator",
    "util.all_util",
    "eager.context",
]

#: modules whose names are public in lower case: init_ops.VarianceScaling is tf.initializers.variance_scaling
_CAMEL_CASE = ("tensorflow.python.ops.init_ops", "tensorflow.python.framework.tensor_util")

#: messages that the tensorboard package brings compiled
_PROTO = "tensorboard.compat.proto."

#: messages that it doesn't bring
_OWN_PROTOS = {
    **dict.fromkeys(
        ("control_flow_pb2", "queue_runner_pb2", "saved_model_pb2"), "thalweg.formats.protos.saved_model_pb2"
    ),
    **dict.fromkeys(
        ("tensor_bundle_pb2", "tensor_slice_pb2", "saved_tensor_slice_pb2"),
        "thalweg.formats.protos.checkpoint_pb2",
    ),
}


class _Named(ModuleType):
    """A module whose names are looked up elsewhere."""

    def __init__(self, name: str, homes: Sequence[Any]) -> None:
        super().__init__(name)
        self.__dict__["_homes"] = homes
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        for home in self._homes:
            if name in vars(home):
                return vars(home)[name]
        if ".gen_" in self.__name__:
            found = _raw_op(name)
            if found is not None:
                return found
        if self.__name__ in _CAMEL_CASE:
            for home in self._homes:
                for public in vars(home):
                    if public.replace("_", "") == name.lower():
                        return vars(home)[public]
        if len(self._homes) == 1 and "__getattr__" in vars(self._homes[0]):
            return getattr(self._homes[0], name)  # a public namespace: it says what is missing
        raise AttributeError(_missing(self.__name__, name, self._homes))

    def __dir__(self) -> list[str]:
        return sorted({n for home in self._homes for n in vars(home) if not n.startswith("_")})


def _missing(module: str, name: str, homes: Sequence[Any]) -> str:
    known = sorted({n for home in homes for n in vars(home) if not n.startswith("_")})
    near = difflib.get_close_matches(name, known, 5, 0.6)
    return f"thalweg has no '{name}' (asked as {module}.{name})" + (
        f"; what comes near: {', '.join(near)}" if near else ""
    )


def _raw_op(name: str) -> Any:
    """The function of gen_*_ops for an op: mat_mul builds MatMul."""
    wanted = name.replace("_", "").lower()
    for op in registry.all_records():
        if op.lower() == wanted:
            return lambda *args, _op=op, **kwargs: emit(_op, *args, **kwargs)
    return None


def _library_modules() -> list[ModuleType]:
    found = []
    for info in pkgutil.walk_packages(thalweg.library.__path__, "thalweg.library."):
        found.append(importlib.import_module(info.name))
    return found


def _public_modules() -> list[ModuleType]:
    return [thalweg, *(m for m in vars(thalweg).values() if isinstance(m, ModuleType) and _is_public(m))]


def _is_public(module: ModuleType) -> bool:
    parts = module.__name__.split(".")
    return parts[0] == "thalweg" and len(parts) == 2 and not hasattr(module, "__path__")


class TensorFlowFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `tensorflow` and what is below it."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        """A spec for every tensorflow module that thalweg has. ModuleNotFoundError names the others."""
        if fullname != "tensorflow" and not fullname.startswith("tensorflow."):
            return None
        if self._homes(fullname) is None:
            raise ModuleNotFoundError(self._no_module(fullname), name=fullname)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def _no_module(self, fullname: str) -> str:
        rest = fullname.removeprefix("tensorflow.").removeprefix("compat.v1.")
        if rest.partition(".")[0] in NOT_PART:
            return f"'{fullname}': tf.{rest} of TensorFlow 1.x is not part of thalweg"
        known = [f"tensorflow.{n}" for n in vars(thalweg) if isinstance(vars(thalweg)[n], ModuleType)]
        known += [f"tensorflow.python.{n}" for n in (*_HOMES, *_PLAIN)]
        near = difflib.get_close_matches(fullname, known, 3, 0.6)
        return f"thalweg has no module '{fullname}'" + (
            f"; what comes near: {', '.join(near)}" if near else ""
        )

    def create_module(self, spec: Any) -> ModuleType:
        """The module of a name."""
        name = spec.name
        homes = self._homes(name)
        assert homes is not None
        return _Named(name, homes)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run: names are looked up when asked for."""
        if self._homes(module.__name__) == [thalweg]:  # tensorflow itself, tensorflow.compat.v1
            module.__dict__["__version__"] = thalweg.__version__

    def _homes(self, fullname: str) -> Sequence[Any] | None:
        """Where a module's names are found, or None where there is no such module."""
        rest = fullname.removeprefix("tensorflow").removeprefix(".")
        if rest in ("", "compat.v1", "_api.v1", "compat.v1.compat.v1"):
            return [thalweg]
        if rest in (
            "python",
            "python.framework",
            "python.ops",
            "python.training",
            "python.training.saving",
            "python.summary",
            "python.client",
            "python.util",
            "python.platform",
            "python.eager",
            "python.ops.losses",
            "python.saved_model",
            "core",
            "core.framework",
            "core.protobuf",
            "core.util",
            "_api",
            "examples",
            "examples.tutorials",
        ):
            return [_Empty]
        if rest.startswith("core."):
            return self._proto(rest.rpartition(".")[2])
        if rest.startswith("python."):
            return self._python(rest.removeprefix("python."))
        if rest.startswith("examples.tutorials.mnist"):
            return [importlib.import_module("thalweg.library.mnist")]
        return self._public(rest.removeprefix("compat.v1."))

    def _public(self, rest: str) -> Sequence[Any] | None:
        at: Any = thalweg
        for part in rest.split("."):
            at = vars(at).get(part)
            if not isinstance(at, ModuleType):
                return None
        return [at]

    def _proto(self, name: str) -> Sequence[Any] | None:
        try:
            return [importlib.import_module(_OWN_PROTOS.get(name, _PROTO + name))]
        except ImportError:
            return None

    def _python(self, rest: str) -> Sequence[Any] | None:
        if rest in _HOMES:
            return [
                *(importlib.import_module(h) for h in _HOMES[rest]),
                *_public_modules(),
                *_library_modules(),
            ]
        if rest in _PLAIN:
            return [*_public_modules(), *_library_modules()]
        return None


class _Empty:
    """Home of packages that only hold modules."""


_finder = TensorFlowFinder()


def install() -> None:
    """Makes `import tensorflow` give thalweg in this process. Harmless when called again."""
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    for name in [m for m in sys.modules if m == "tensorflow" or m.startswith("tensorflow.")]:
        if not isinstance(sys.modules[name], _Named):
            del sys.modules[name]
