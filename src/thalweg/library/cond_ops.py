"""Branches: cond, case, switch_case."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from thalweg.base import dtypes
from thalweg.graph.cond_context import CondContext
from thalweg.graph.control_flow import merge
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Operation, Tensor
from thalweg.library import framework, loop_values
from thalweg.library.casting import cast
from thalweg.library.check_ops import Assert
from thalweg.library.framework import name_scope
from thalweg.library.graph_keys import GraphKeys
from thalweg.library.grouping import with_dependencies
from thalweg.library.joining_ops import stack
from thalweg.library.reduction_ops import reduce_sum


def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Callable[[], Any] | None = None,
    fn2: Callable[[], Any] | None = None,
) -> Any:
    """What true_fn returns where pred (a boolean scalar) is true when it runs, else what false_fn returns.

    Both are called once, to make their nodes; only the nodes made inside the chosen one run. They return
    nests of tensors of the same structure and types. strict: don't unpack lists and tuples of one element.
    fn1, fn2: old names of true_fn and false_fn.
    Errors: TypeError for a pred that is a Python bool and for functions that can't be called or return other
    structures, ValueError for functions that return nothing, or other types.
    """
    true_fn = _function(true_fn, fn1, "true_fn", "fn1")
    false_fn = _function(false_fn, fn2, "false_fn", "fn2")
    with name_scope(name, "cond", [pred]):
        if isinstance(pred, bool):
            raise TypeError("'pred' must not be a Python bool.")
        pred, pivots = _split(pred)
        branches = []
        for branch, what, fn in ((1, "true_fn", true_fn), (0, "false_fn", false_fn)):
            context = CondContext(pred, pivots[branch], branch)
            branches.append((context, *_build(context, fn, what)))
        (context_t, original_t, results_t), (context_f, original_f, results_f) = branches
        if not strict:
            original_t, original_f = _unpacked(original_t), _unpacked(original_f)
        _check_results(original_t, results_t, original_f, results_f)
        merged = [merge(pair)[0] for pair in zip(results_f, results_t, strict=True)]
        values = loop_values.from_flows(loop_values.flatten(original_t), merged)
        if context_t.outer_context is None:  # nested ones are found through their outer contexts
            framework.add_to_collection(GraphKeys.COND_CONTEXT, context_t)
            framework.add_to_collection(GraphKeys.COND_CONTEXT, context_f)
        result = loop_values.pack(original_t, values)
        return result if strict else _unpacked(result)


def _function(new: Any, old: Any, name: str, old_name: str) -> Callable[[], Any]:
    if new is not None and old is not None:
        raise TypeError(f"cond(): '{name}' and '{old_name}' may not be set simultaneously.")
    fn = old if new is None else new
    if fn is None:
        raise TypeError(f"cond(): '{name}' argument required")
    if not callable(fn):
        raise TypeError(f"'{name}' must be callable.")
    return fn


def _split(pred: Any) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """pred by a node of its own, and its two sides: (alive where it is false, alive where it is true)."""
    with name_scope(None, "Switch") as scope:
        false, true = emit("Switch", pred, pred, name=scope)
    pivot_true = emit("Identity", true, name="switch_t")
    pivot_false = emit("Identity", false, name="switch_f")
    pred = emit("Identity", pred, name="pred_id")
    for tensor in (false, pivot_true, pivot_false, pred):
        tensor.graph.prevent_fetching(tensor.op)
    return pred, (pivot_false, pivot_true)


def _build(context: CondContext, fn: Callable[[], Any], what: str) -> tuple[Any, list[Tensor]]:
    """Makes a branch: what fn returns, and the tensors of it, dead where the branch doesn't run."""
    context.Enter()
    try:
        original = fn()
        if original is None:
            raise ValueError(f"'{what}' must have a return value.")
        results = [_result(context, v) for v in loop_values.flatten(original)]
        context.ExitResult(results)
    finally:
        context.Exit()
    return original, results


def _result(context: CondContext, value: Any) -> Tensor:
    if isinstance(value, Operation):
        return with_dependencies([value], context.pivot)
    return context.BuildResult(loop_values.tensor(value))


def _unpacked(result: Any) -> Any:
    """The only element of a list or tuple of one."""
    if isinstance(result, list | tuple) and not hasattr(result, "_fields") and len(result) == 1:
        return result[0]
    return result


def _check_results(
    original_t: Any, results_t: list[Tensor], original_f: Any, results_f: list[Tensor]
) -> None:
    try:
        loop_values.check_same_structure(original_t, original_f)
    except (TypeError, ValueError) as e:
        kind = "types" if isinstance(e, TypeError) else "values"
        raise type(e)(f"Incompatible return {kind} of 'true_fn' and 'false_fn': {e}") from None
    if not results_t:
        raise ValueError("'true_fn' and 'false_fn' must return at least one result.")
    for t, f in zip(results_t, results_f, strict=True):
        if t._dtype.base_dtype != f._dtype.base_dtype:
            raise ValueError(
                "Outputs of 'true_fn' and 'false_fn' must have the same type(s). Received "
                f"{t._dtype.name} from 'true_fn' and {f._dtype.name} from 'false_fn'."
            )


# ---- several branches ------------------------------------------------------------------------------------


def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str | None = "case",
) -> Any:
    """What the function of the first pair returns whose predicate is true when it runs; else default's.

    pred_fn_pairs: pairs of a boolean scalar tensor and a function, or a dict of them.
    exclusive: InvalidArgumentError when more than one predicate is true. Without a default: when none is.
    Errors: TypeError where the pairs aren't pairs of a boolean tensor and a function.
    """
    predicates, actions = _checked_pairs(pred_fn_pairs)
    with name_scope(name, "case", predicates):
        if default is None:
            default, predicates, actions = _default_of(predicates, actions)
        fn = default
        for predicate, action in reversed(list(zip(predicates, actions, strict=True))):
            fn = functools.partial(cond, predicate, true_fn=action, false_fn=fn, strict=strict)
        if not exclusive:
            return fn()
        with framework.control_dependencies([_at_most(predicates, 1, "Input error: exclusive=True")]):
            return fn()


def _checked_pairs(pairs: Any) -> tuple[list[Tensor], list[Callable[[], Any]]]:
    if not isinstance(pairs, list | tuple | dict):
        raise TypeError(f"'pred_fn_pairs' must be a list, tuple, or dict. Received: {type(pairs)}")
    if isinstance(pairs, OrderedDict):
        pairs = list(pairs.items())
    elif isinstance(pairs, dict):
        pairs = sorted(pairs.items(), key=lambda item: item[0].name)
    predicates, actions = [], []
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"Each entry in 'pred_fn_pairs' must be a 2-tuple. Received {pair}.")
        predicate, action = pair
        if not isinstance(predicate, Tensor):
            raise TypeError(f"pred must be a Tensor, got: {predicate}")
        if predicate.dtype != dtypes.bool:
            raise TypeError(f"pred must be Tensor of type bool: {predicate.name}")
        if not callable(action):
            raise TypeError(f"fn for pred {predicate.name} must be callable.")
        predicates.append(predicate)
        actions.append(action)
    if not predicates:
        raise ValueError("'pred_fn_pairs' must hold at least one pair")
    return predicates, actions


def _at_most(predicates: Sequence[Tensor], n: int, message: str) -> Operation:
    """An operation that fails where more than n of the predicates are true."""
    preds = stack(list(predicates), name="preds_c")
    count = reduce_sum(cast(preds, dtypes.int32), name="num_true_conds")
    few = emit("LessEqual", count, framework.constant(n, name="n_true_conds"))
    names = ", ".join(p.name for p in predicates)
    text = f"{message}: more than {n} conditions ({names}) evaluated as True:"
    return Assert(few, [text, preds], summarize=len(predicates))


def _default_of(
    predicates: list[Tensor], actions: list[Callable[[], Any]]
) -> tuple[Callable[[], Any], list[Tensor], list[Callable[[], Any]]]:
    """The last action as the default, which fails where its predicate isn't true; and the others."""
    predicate, action = predicates[-1], actions[-1]
    others = predicates[:-1]

    def default() -> Any:
        others_text = (
            f"Implementation error: selected default action #{len(others)} was called, but some of other "
            "predicates are True: "
        )
        text = ("Input error: None of conditions evaluated as True:", stack(predicates, name="preds_c"))
        checks = [Assert(predicate, text)]
        if others:
            checks.insert(0, _at_most(others, 0, others_text))
        with framework.control_dependencies(checks):
            return action()

    return default, others, actions[:-1]


def switch_case(
    branch_index: Any,
    branch_fns: Any,
    default: Callable[[], Any] | None = None,
    name: str | None = "switch_case",
) -> Any:
    """What the function number branch_index returns; default's (or the last one's) for other numbers.

    branch_fns: functions, pairs of number and function, or a dict of them; the numbers are 0 to n-1.
    Errors: TypeError for an index that is no integer tensor, ValueError for other numbers.
    """
    actions = _numbered(branch_fns, default, branch_index)
    with name_scope(name, "case", [branch_index]):
        fn = actions[-1]
        for i in reversed(range(len(actions) - 1)):
            chosen = emit("Equal", branch_index, convert_to_tensor(i, branch_index.dtype))
            fn = functools.partial(cond, chosen, true_fn=actions[i], false_fn=fn, strict=True)
        return fn()


def _numbered(fns: Any, default: Any, index: Any) -> list[Callable[[], Any]]:
    if not isinstance(index, Tensor):
        raise TypeError(f"'branch_index' must be a Tensor, got {type(index)}")
    if not index.dtype.is_integer:
        raise TypeError(f"'branch_index' must be an integer Tensor, got {index.dtype!r}")
    if not fns:
        raise ValueError("Must provide at least one item in 'branch_fns'")
    if not isinstance(fns, list | tuple | dict):
        raise TypeError("'branch_fns' must be a list, tuple, or dict")
    pairs = list(fns.items()) if isinstance(fns, dict) else list(fns)
    if all(callable(fn) for fn in pairs):
        pairs = list(enumerate(pairs))
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"Each entry in 'branch_fns' must be a 2-tuple. Received {pair}.")
        if not isinstance(pair[0], int):
            raise TypeError(f"key must be a Python `int`, got {type(pair[0])}")
        if not callable(pair[1]):
            raise TypeError(f"fn for key {pair[0]} must be callable.")
    keys = sorted(p[0] for p in pairs)
    if keys != list(range(len(keys))):
        raise ValueError(
            f"branch indices (keys) must form contiguous range of [0 to {len(keys)}) but found "
            f"{{{','.join(map(str, keys))}}}"
        )
    actions = [fn for _, fn in sorted(pairs, key=lambda p: p[0])]
    return actions if default is None else [*actions, default]
