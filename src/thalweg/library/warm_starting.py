"""tf.train.warm_start: variables that start from another model's checkpoint.

Source: TensorFlow's warm_starting_util.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from thalweg.base.errors import UnimplementedError
from thalweg.library import framework
from thalweg.library.checkpoint_utils import init_from_checkpoint
from thalweg.library.graph_keys import GraphKeys
from thalweg.library.partitioned_variable import PartitionedVariable
from thalweg.library.variable_base import Variable


class VocabInfo(NamedTuple):
    """How a vocabulary changed, for rows that follow one. warm_start doesn't remap rows yet."""

    new_vocab: str
    new_vocab_size: int
    num_oov_buckets: int
    old_vocab: str
    old_vocab_size: int = -1
    backup_initializer: Any = None
    axis: int = 0


def warm_start(
    ckpt_to_initialize_from: Any,
    vars_to_warm_start: str | Sequence[Any] | None = ".*",
    var_name_to_vocab_info: Mapping[str, VocabInfo] | None = None,
    var_name_to_prev_var_name: Mapping[str, str] | None = None,
) -> None:
    """Makes variables start from a checkpoint (or the latest one of a folder), by their names.

    vars_to_warm_start: a regular expression for trainable variables; a list of those for all global ones; or
        a list of variables. None: none.
    var_name_to_prev_var_name: the names that variables have in the checkpoint, where they are others.

    Errors: ValueError for names in that dict that aren't started, and as init_from_checkpoint; TypeError for
    what is no variable; UnimplementedError for vocabularies.
    """
    if var_name_to_vocab_info:
        raise UnimplementedError(
            None, None, f"warm_start with vocabularies: {', '.join(sorted(var_name_to_vocab_info))}"
        )
    previous = dict(var_name_to_prev_var_name or {})
    groups: dict[str, list[Variable]] = {}
    for variable in _chosen(vars_to_warm_start):
        for v in variable if isinstance(variable, PartitionedVariable | list) else [variable]:
            if not isinstance(v, Variable):
                raise TypeError(f"vars_to_warm_start must hold variables, got {v}")
            info = v._save_slice_info
            parts = groups.setdefault(info.full_name if info else v.op.name, [])
            if all(v is not other for other in parts):
                parts.append(v)
    unused = sorted(set(previous) - set(groups))
    if unused:
        raise ValueError(
            "You provided the following variables in var_name_to_prev_var_name that were not used: "
            f"{', '.join(unused)}. Perhaps you misspelled them? Here is the list of viable variable names: "
            f"{', '.join(sorted(groups))}"
        )
    whole = {name: parts[0] if parts[0]._save_slice_info is None else parts for name, parts in groups.items()}
    init_from_checkpoint(
        ckpt_to_initialize_from, [(previous.get(name, name), target) for name, target in whole.items()]
    )


def _chosen(wanted: str | Sequence[Any] | None) -> Sequence[Any]:
    if wanted is None:
        return []
    if isinstance(wanted, str):
        return framework.get_collection(GraphKeys.TRAINABLE_VARIABLES, scope=wanted)
    if not isinstance(wanted, list | tuple):
        raise ValueError(f"vars_to_warm_start must be a text, a list or None, got {type(wanted)}")
    if wanted and all(isinstance(w, str) for w in wanted):
        found = [v for w in wanted for v in framework.get_collection(GraphKeys.GLOBAL_VARIABLES, scope=w)]
        return list({id(v): v for v in found}.values())
    return wanted
