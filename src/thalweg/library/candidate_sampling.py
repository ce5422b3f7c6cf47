"""Sampled losses for many classes: candidates are drawn instead of all classes."""

from __future__ import annotations

from typing import Any

from thalweg.base import dtypes
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library.arguments import scope
from thalweg.library.array_ops import shape
from thalweg.library.casting import cast
from thalweg.library.cross_entropy import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits_v2,
)
from thalweg.library.embedding_ops import embedding_lookup
from thalweg.library.fill_ops import ones, ones_like, zeros_like
from thalweg.library.matrix_ops import matmul
from thalweg.library.partitioned_variable import PartitionedVariable
from thalweg.library.random_seed import get_seed

Candidates = tuple[Tensor, Tensor, Tensor]


def _seeds(op_seed: int | None) -> dict[str, Any]:
    seed, seed2 = get_seed(op_seed)
    return {"seed": seed or 0, "seed2": seed2 or 0}


def uniform_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """(sampled classes [num_sampled], expected counts of the true ones, of the sampled ones): all equally
    likely."""
    return emit(
        "UniformCandidateSampler",
        true_classes,
        num_true=num_true,
        num_sampled=num_sampled,
        unique=unique,
        range_max=range_max,
        **_seeds(seed),
        name=name,
    )


def log_uniform_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """As uniform_candidate_sampler; class k has probability log((k + 2) / (k + 1)) / log(range_max + 1)
    (Zipf)."""
    return emit(
        "LogUniformCandidateSampler",
        true_classes,
        num_true=num_true,
        num_sampled=num_sampled,
        unique=unique,
        range_max=range_max,
        **_seeds(seed),
        name=name,
    )


def learned_unigram_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """As uniform_candidate_sampler; probabilities follow how often classes were true so far."""
    return emit(
        "LearnedUnigramCandidateSampler",
        true_classes,
        num_true=num_true,
        num_sampled=num_sampled,
        unique=unique,
        range_max=range_max,
        **_seeds(seed),
        name=name,
    )


def fixed_unigram_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    vocab_file: str = "",
    distortion: float = 1.0,
    num_reserved_ids: int = 0,
    num_shards: int = 1,
    shard: int = 0,
    unigrams: Any = (),
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """As uniform_candidate_sampler; probabilities are counts (from a file or a list) to the power
    distortion."""
    return emit(
        "FixedUnigramCandidateSampler",
        true_classes,
        num_true=num_true,
        num_sampled=num_sampled,
        unique=unique,
        range_max=range_max,
        vocab_file=vocab_file,
        distortion=distortion,
        num_reserved_ids=num_reserved_ids,
        num_shards=num_shards,
        shard=shard,
        unigrams=list(unigrams),
        **_seeds(seed),
        name=name,
    )


def all_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """As uniform_candidate_sampler, but all classes 0 ... num_sampled - 1 are the sample."""
    return emit(
        "AllCandidateSampler",
        true_classes,
        num_true=num_true,
        num_sampled=num_sampled,
        unique=unique,
        **_seeds(seed),
        name=name,
    )


def compute_accidental_hits(
    true_classes: Any,
    sampled_candidates: Any,
    num_true: int,
    seed: int | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """(row, position in the sample, a hugely negative weight) of each candidate that is a true class of a
    row."""
    return emit(
        "ComputeAccidentalHits",
        true_classes,
        sampled_candidates,
        num_true=num_true,
        **_seeds(seed),
        name=name,
    )


# ---- losses --------------------------------------------------------------------------------------------


def _row_sums(x: Tensor) -> Tensor:
    """The sum of each row, by a product with ones, which is quick forwards and backwards."""
    columns = shape(x)[1]
    column = ones(convert_to_tensor([columns, 1], name="stack"), x.dtype.base_dtype)
    return emit("Reshape", matmul(x, column), [-1])


def _sampled_logits(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int,
    sampled_values: Any,
    remove_accidental_hits: bool,
    partition_strategy: str,
    name: str | None,
    seed: int | None = None,
) -> tuple[Tensor, Tensor]:
    """(logits, labels) [batch, num_true + num_sampled], logits corrected by the expected counts."""
    weights = list(weights) if isinstance(weights, PartitionedVariable | list | tuple) else [weights]
    with scope(name, "compute_sampled_logits"):
        labels = cast(convert_to_tensor(labels), dtypes.int64)
        flat = emit("Reshape", labels, [-1])
        if sampled_values is None:
            sampled_values = log_uniform_candidate_sampler(
                labels, num_true, num_sampled, unique=True, range_max=num_classes, seed=seed
            )
        sampled, true_expected, sampled_expected = (emit("StopGradient", s) for s in sampled_values)
        sampled = cast(sampled, dtypes.int64)
        ids = emit("ConcatV2", [flat, sampled], 0, name="concat")
        kind = inputs.dtype.base_dtype
        n_true = shape(flat)[0]
        rows = cast(embedding_lookup(weights, ids, partition_strategy=partition_strategy), kind)
        true_w = emit("Slice", rows, [0, 0], convert_to_tensor([n_true, -1], name="stack"))
        sampled_w = emit("Slice", rows, convert_to_tensor([n_true, 0], name="stack"), [-1, -1])
        sampled_logits = matmul(inputs, sampled_w, transpose_b=True)
        all_b = cast(embedding_lookup(biases, ids, partition_strategy=partition_strategy), kind)
        true_b = emit("Slice", all_b, [0], shape(flat))
        sampled_b = emit("Slice", all_b, shape(flat), [-1])
        width = shape(true_w)[1:2]
        by_label = emit("Reshape", true_w, emit("ConcatV2", [[-1, num_true], width], 0, name="concat"))
        dots = emit("Mul", emit("ExpandDims", inputs, 1), by_label)
        dots = emit("Reshape", dots, emit("ConcatV2", [[-1], width], 0, name="concat"))
        true_logits = emit("Reshape", _row_sums(dots), [-1, num_true])
        true_logits = true_logits + emit("Reshape", true_b, [-1, num_true])
        sampled_logits = sampled_logits + sampled_b
        if remove_accidental_hits:
            sampled_logits = _without_hits(sampled_logits, labels, sampled, num_true, num_sampled)
        true_logits = true_logits - emit("Log", true_expected)
        sampled_logits = sampled_logits - emit("Log", sampled_expected)
        logits = emit("ConcatV2", [true_logits, sampled_logits], 1, name="concat")
        shares = [ones_like(true_logits) / num_true, zeros_like(sampled_logits)]
        return logits, emit("ConcatV2", shares, 1, name="concat")


def _without_hits(logits: Tensor, labels: Tensor, sampled: Tensor, num_true: int, num_sampled: int) -> Tensor:
    """logits with the candidates that are true classes pushed down."""
    row, place, weight = compute_accidental_hits(labels, sampled, num_true)
    cells = [emit("Reshape", row, [-1, 1]), emit("Reshape", cast(place, dtypes.int32), [-1, 1])]
    indices = emit("ConcatV2", cells, 1, name="sparse_indices")
    size = emit("ConcatV2", [shape(labels)[:1], emit("ExpandDims", num_sampled, 0)], 0, name="concat")
    weight = cast(weight, logits.dtype.base_dtype)
    return logits + emit("SparseToDense", indices, size, weight, 0.0, validate_indices=False)


def nce_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    partition_strategy: str = "mod",
    name: str | None = "nce_loss",
) -> Tensor:
    """[batch]: the noise-contrastive estimation loss of inputs [batch, dim] against labels [batch,
    num_true]."""
    logits, targets = _sampled_logits(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        remove_accidental_hits,
        partition_strategy,
        name,
    )
    return _row_sums(sigmoid_cross_entropy_with_logits(targets, logits, name="sampled_losses"))


def sampled_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    partition_strategy: str = "mod",
    name: str | None = "sampled_softmax_loss",
    seed: int | None = None,
) -> Tensor:
    """[batch]: the softmax loss over the true and the sampled classes only. For training: it
    underestimates."""
    logits, targets = _sampled_logits(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        remove_accidental_hits,
        partition_strategy,
        name,
        seed,
    )
    targets = emit("StopGradient", targets, name="labels_stop_gradient")
    return softmax_cross_entropy_with_logits_v2(targets, logits)
