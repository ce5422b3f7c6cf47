"""Optimizer: gradients of a loss, and the operation that applies them to variables.

A program may derive its own class: it overrides `_prepare`, `_create_slots`, `_apply_dense`, `_apply_sparse`
(reference variables), `_resource_apply_dense`, `_resource_apply_sparse` (resource variables) and `_finish`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from thalweg.base import dtypes, nest
from thalweg.base.dtypes import DType
from thalweg.graph.composite import IndexedSlices
from thalweg.graph.convert import convert_to_tensor, get_default_graph
from thalweg.graph.emitter import emit
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation, Tensor
from thalweg.library import framework, grouping
from thalweg.library.framework import name_scope
from thalweg.library.gradients import gradients
from thalweg.library.graph_keys import GraphKeys
from thalweg.library.optimizers import slot_creator
from thalweg.library.resource_variable import BaseResourceVariable
from thalweg.library.variables import Variable, trainable_variables

GradAndVar = tuple[Any, Any]


class Optimizer:
    """The base of optimizers.

    use_locking: kept for TensorFlow's sake and written into the graph; updates are never lost either way.
    name: names the scope of the nodes that update, and the slots. ValueError where it is empty.

    Slots are variables that an optimizer keeps beside each variable it trains, such as momenta.
    """

    #: how far gradients wait for each other: not at all, for those of the same operation, for all of them
    GATE_NONE = 0
    GATE_OP = 1
    GATE_GRAPH = 2

    def __init__(self, use_locking: bool, name: str) -> None:
        if not name:
            raise ValueError("Must specify the optimizer name")
        self._use_locking = use_locking
        self._name = name
        #: slot name -> key of the variable -> slot variable
        self._slots: dict[str, dict[Any, Any]] = {}
        #: (name, graph) -> variable that belongs to no variable
        self._non_slot_dict: dict[tuple[str, Graph], Any] = {}

    def get_name(self) -> str:
        """The optimizer's name."""
        return self._name

    # ---- what programs call ----------------------------------------------------------------------------

    def minimize(
        self,
        loss: Any,
        global_step: Any = None,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Any = None,
    ) -> Operation:
        """An operation that moves the variables against the gradients of `loss` once.

        The arguments are those of compute_gradients and apply_gradients.
        Errors: ValueError where `loss` depends on none of the variables.
        """
        grads_and_vars = self.compute_gradients(
            loss,
            var_list=var_list,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss,
        )
        if all(g is None for g, _ in grads_and_vars):
            raise ValueError(
                "No gradients provided for any variable, check your graph for ops that do not support "
                f"gradients, between variables {[str(v) for _, v in grads_and_vars]} and loss {loss}."
            )
        return self.apply_gradients(grads_and_vars, global_step=global_step, name=name)

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[GradAndVar]:
        """A (gradient, variable) pair for each variable; a gradient is a Tensor, an IndexedSlices or None.

        loss: a tensor, or a function that returns one.
        var_list: variables or tensors, any nest of them; None: all trainable variables.
        gate_gradients: GATE_NONE, GATE_OP or GATE_GRAPH.
        grad_loss: the gradient of something with respect to `loss`; ones by default.
        Errors: ValueError without variables, and for a loss or variables of other than floating types;
        NotImplementedError for what is neither a variable nor a tensor.
        """
        if gate_gradients not in (Optimizer.GATE_NONE, Optimizer.GATE_OP, Optimizer.GATE_GRAPH):
            raise ValueError(
                "gate_gradients must be one of: Optimizer.GATE_NONE, Optimizer.GATE_OP, Optimizer.GATE_GRAPH."
                f"  Not {gate_gradients}"
            )
        if callable(loss):
            loss = loss()
        self._assert_valid_dtypes([loss])
        if grad_loss is not None:
            self._assert_valid_dtypes([grad_loss])
        variables = self._variables_to_train(var_list)
        grads = gradients(
            loss,
            variables,
            grad_ys=grad_loss,
            gate_gradients=gate_gradients == Optimizer.GATE_OP,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
        )
        if gate_gradients == Optimizer.GATE_GRAPH:
            grads = grouping.tuple(grads)
        pairs = list(zip(grads, variables, strict=True))
        self._assert_valid_dtypes([v for g, v in pairs if g is not None and v.dtype != dtypes.resource])
        return pairs

    def apply_gradients(
        self, grads_and_vars: Iterable[GradAndVar], global_step: Any = None, name: str | None = None
    ) -> Operation:
        """An operation that applies gradients to their variables; pairs without a gradient are left out.

        global_step: a variable that it adds one to, after all updates. name: the operation's name; the
        optimizer's by default. It is added to the collection TRAIN_OP.
        Errors: ValueError where there are no pairs, or none has a gradient; TypeError for a gradient that is
        no tensor; NotImplementedError for what can't be updated.
        """
        pairs = [(_as_gradient(g), v) for g, v in grads_and_vars]
        if not pairs:
            raise ValueError("No variables provided.")
        for _, v in pairs:
            _check_kind(v)
        present = [(g, v) for g, v in pairs if g is not None]
        if not present:
            raise ValueError(f"No gradients provided for any variable: {[str(v) for _, v in pairs]}.")
        with framework.init_scope():
            self._create_slots([v for _, v in present])
        with name_scope(name, self._name) as scope:
            self._prepare()
            updates = [self._scoped_update(g, v) for g, v in present]
            if global_step is None:
                apply_updates = self._finish(updates, scope)
            else:
                with framework.control_dependencies([self._finish(updates, "update")]):
                    apply_updates = _add_one(global_step, scope)
        result: Operation = apply_updates.op if isinstance(apply_updates, Tensor) else apply_updates
        train_ops = framework.get_collection_ref(GraphKeys.TRAIN_OP)
        if result not in train_ops:
            train_ops.append(result)
        return result

    def get_slot(self, var: Any, name: str) -> Any:
        """The slot variable called `name` of a variable; None where there is none."""
        return self._slots.get(name, {}).get(_var_key(var))

    def get_slot_names(self) -> list[str]:
        """The names of the slots, sorted."""
        return sorted(self._slots)

    def variables(self) -> list[Any]:
        """The variables that the optimizer itself keeps in the default graph, sorted by name."""
        graph = get_default_graph()
        own = [*self._non_slot_variables(), *(v for slots in self._slots.values() for v in slots.values())]
        return sorted((v for v in own if v.op.graph is graph), key=lambda v: v.name)

    # ---- what derived classes override -----------------------------------------------------------------

    def _valid_dtypes(self) -> set[DType]:
        """The element types that a loss and variables may have."""
        return {dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64}

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        """Makes the slots of these variables; called outside of all control dependencies."""

    def _prepare(self) -> None:
        """Makes the tensors that all updates share, such as the learning rate."""

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        """An operation (or tensor) that updates a reference variable."""
        raise NotImplementedError

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        """An operation that updates a resource variable (the variable is passed, not its handle tensor)."""
        raise NotImplementedError

    def _apply_sparse_duplicate_indices(self, grad: IndexedSlices, var: Any) -> Any:
        """As _apply_sparse, for rows that may repeat: sums them first. Override where that isn't needed."""
        values, indices = _deduplicate_indexed_slices(grad.values, grad.indices)
        return self._apply_sparse(IndexedSlices(values, indices, grad.dense_shape), var)

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        """An operation that updates rows of a reference variable; no row repeats."""
        raise NotImplementedError

    def _resource_apply_sparse_duplicate_indices(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        """As _resource_apply_sparse, for rows that may repeat. Sums them up first."""
        values, indices = _deduplicate_indexed_slices(grad, indices)
        return self._resource_apply_sparse(values, handle, indices)

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        """An operation that updates rows of a resource variable; no row repeats."""
        raise NotImplementedError

    def _finish(self, update_ops: list[Any], name_scope: str) -> Any:
        """One operation, named `name_scope`, that finishes when all updates have."""
        return grouping.group(*update_ops, name=name_scope)

    # ---- what derived classes call ---------------------------------------------------------------------

    def _slot_dict(self, slot_name: str) -> dict[Any, Any]:
        return self._slots.setdefault(slot_name, {})

    def _get_or_make_slot(self, var: Any, val: Tensor, slot_name: str, op_name: str) -> Any:
        """The slot of a variable, made with the initial value `val` where it doesn't exist."""
        return self._slot(var, slot_name, lambda: slot_creator.create_slot(var, val, op_name))

    def _get_or_make_slot_with_initializer(
        self, var: Any, initializer: Any, shape: Any, dtype: Any, slot_name: str, op_name: str
    ) -> Any:
        """The slot of a variable, made with an initializer where it doesn't exist."""
        return self._slot(
            var,
            slot_name,
            lambda: slot_creator.create_slot_with_initializer(var, initializer, shape, dtype, op_name),
        )

    def _zeros_slot(self, var: Any, slot_name: str, op_name: str) -> Any:
        """The slot of a variable, made with zeros where it doesn't exist."""
        return self._slot(var, slot_name, lambda: slot_creator.create_zeros_slot(var, op_name))

    def _slot(self, var: Any, slot_name: str, make: Callable[[], Any]) -> Any:
        slots, key = self._slot_dict(slot_name), _var_key(var)
        if key not in slots:
            slots[key] = make()
        return slots[key]

    def _create_non_slot_variable(self, initial_value: Any, name: str, colocate_with: Any) -> Any:
        """A variable of the optimizer that belongs to no variable; made once a graph."""
        key = (name, colocate_with.graph)
        if key not in self._non_slot_dict:
            make: Any = Variable  # its metaclass takes the arguments, of which a type checker knows nothing
            with framework.colocate_with(colocate_with):
                self._non_slot_dict[key] = make(
                    initial_value, name=name, trainable=False, use_resource=_is_resource(colocate_with)
                )
        return self._non_slot_dict[key]

    def _get_non_slot_variable(self, name: str, graph: Graph | None = None) -> Any:
        return self._non_slot_dict.get((name, graph))  # type: ignore[arg-type]  # None finds nothing

    def _non_slot_variables(self) -> list[Any]:
        return list(self._non_slot_dict.values())

    def _call_if_callable(self, param: Any) -> Any:
        """A hyperparameter may be given as a function without arguments."""
        return param() if callable(param) else param

    # ---- parts -----------------------------------------------------------------------------------------

    def _variables_to_train(self, var_list: Any) -> list[Any]:
        if var_list is None:
            of_resources = framework.get_collection(GraphKeys.TRAINABLE_RESOURCE_VARIABLES)
            variables = trainable_variables() + of_resources
        else:
            variables = nest.flatten(var_list)
        variables = variables + framework.get_collection(GraphKeys._STREAMING_MODEL_PORTS)
        for v in variables:
            _check_kind(v)
        if not variables:
            raise ValueError("No variables to optimize.")
        return variables

    def _assert_valid_dtypes(self, tensors: Sequence[Any]) -> None:
        valid = self._valid_dtypes()
        for t in tensors:
            dtype = t.dtype.base_dtype
            if dtype not in valid:
                raise ValueError(f"Invalid type {dtype!r} for {t.name}, expected: {list(valid)}.")

    def _scoped_update(self, grad: Any, var: Any) -> Any:
        with name_scope(f"update_{var.op.name}"), framework.colocate_with(var):
            return self._update_variable(grad, var)

    def _update_variable(self, grad: Any, var: Any) -> Any:
        """The update of one variable, with its constraint applied after it."""
        if isinstance(var, Tensor):
            raise NotImplementedError("Trying to update a Tensor ", var)
        if isinstance(grad, IndexedSlices):
            if var.constraint is not None:
                raise RuntimeError("Cannot use a constraint function on a sparse variable.")
            if _is_resource(var):
                return self._resource_apply_sparse_duplicate_indices(grad.values, var, grad.indices)
            return self._apply_sparse_duplicate_indices(grad, var)
        apply = self._resource_apply_dense if _is_resource(var) else self._apply_dense
        update = apply(grad, var)
        if var.constraint is None:
            return update
        with framework.control_dependencies([update]):
            # read again: the read that was made with a reference variable may come before the update
            return var.assign(var.constraint(var if _is_resource(var) else var.read_value()))


def _is_resource(var: Any) -> bool:
    return isinstance(var, BaseResourceVariable)


def _var_key(var: Any) -> tuple[Graph, str]:
    return var.op.graph, var.op.name


def _check_kind(var: Any) -> None:
    if not isinstance(var, Variable | Tensor):
        raise NotImplementedError("Trying to optimize unsupported type ", var)


def _as_gradient(grad: Any) -> Any:
    if grad is None:
        return None
    try:
        return framework.convert_to_tensor_or_indexed_slices(grad)
    except TypeError:
        message = f"Gradient must be convertible to a Tensor or IndexedSlices, or None: {grad}"
        raise TypeError(message) from None


def _add_one(global_step: Any, name: str) -> Any:
    with framework.colocate_with(global_step):
        if _is_resource(global_step):
            one = convert_to_tensor(1, global_step.dtype)
            return emit("AssignAddVariableOp", global_step.handle, one, name=name)
        return emit("AssignAdd", global_step, 1, name=name)


def _deduplicate_indexed_slices(values: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    """(values, indices) with each index once, and the sum of its rows."""
    unique, positions = emit("Unique", indices)
    rows: Any = emit.shape(unique)
    return emit("UnsortedSegmentSum", values, positions, rows[0]), unique
