"""tf.nn: neural network ops. Names from thalweg.library; what each does is said there."""

from thalweg.library.missing import missing
from thalweg.library.activations import crelu, elu, leaky_relu, log_softmax, relu, relu6, selu, softmax, softplus, softsign, swish
from thalweg.library.array_ops import depth_to_space, space_to_batch, space_to_depth
from thalweg.library.candidate_sampling import all_candidate_sampler, compute_accidental_hits, fixed_unigram_candidate_sampler, learned_unigram_candidate_sampler, log_uniform_candidate_sampler, nce_loss, sampled_softmax_loss, uniform_candidate_sampler
from thalweg.library.clip_ops import l2_normalize
from thalweg.library.convolution_ops import atrous_conv2d, conv1d, conv2d, conv2d_backprop_filter, conv2d_backprop_input, conv2d_transpose, conv3d, conv3d_backprop_filter, conv3d_backprop_filter_v2, conv3d_transpose, convolution, depthwise_conv2d, depthwise_conv2d_backprop_filter, depthwise_conv2d_backprop_input, depthwise_conv2d_native, depthwise_conv2d_native_backprop_filter, depthwise_conv2d_native_backprop_input, separable_conv2d, with_space_to_batch
from thalweg.library.cross_entropy import log_poisson_loss, sigmoid_cross_entropy_with_logits, softmax_cross_entropy_with_logits, softmax_cross_entropy_with_logits_v2, sparse_softmax_cross_entropy_with_logits, weighted_cross_entropy_with_logits
from thalweg.library.dropout_ops import dropout
from thalweg.library.embedding_ops import embedding_lookup, embedding_lookup_sparse, safe_embedding_lookup_sparse
from thalweg.library.math_ops import sigmoid, tanh
from thalweg.library.nn_ops import bias_add, in_top_k, l2_loss, relu_layer, top_k, xw_plus_b, zero_fraction
from thalweg.library.normalization_ops import batch_norm_with_global_normalization, batch_normalization, fused_batch_norm, local_response_normalization, lrn, moments, normalize_moments, sufficient_statistics, weighted_moments
from thalweg.library.pooling_ops import avg_pool, avg_pool1d, avg_pool2d, avg_pool3d, avg_pool_v2, max_pool, max_pool1d, max_pool2d, max_pool3d, max_pool_v2, max_pool_with_argmax, pool

__getattr__ = missing(__name__)

__all__ = [
    "all_candidate_sampler",
    "atrous_conv2d",
    "avg_pool",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "avg_pool_v2",
    "batch_norm_with_global_normalization",
    "batch_normalization",
    "bias_add",
    "compute_accidental_hits",
    "conv1d",
    "conv2d",
    "conv2d_backprop_filter",
    "conv2d_backprop_input",
    "conv2d_transpose",
    "conv3d",
    "conv3d_backprop_filter",
    "conv3d_backprop_filter_v2",
    "conv3d_transpose",
    "convolution",
    "crelu",
    "depth_to_space",
    "depthwise_conv2d",
    "depthwise_conv2d_backprop_filter",
    "depthwise_conv2d_backprop_input",
    "depthwise_conv2d_native",
    "depthwise_conv2d_native_backprop_filter",
    "depthwise_conv2d_native_backprop_input",
    "dropout",
    "elu",
    "embedding_lookup",
    "embedding_lookup_sparse",
    "fixed_unigram_candidate_sampler",
    "fused_batch_norm",
    "in_top_k",
    "l2_loss",
    "l2_normalize",
    "leaky_relu",
    "learned_unigram_candidate_sampler",
    "local_response_normalization",
    "log_poisson_loss",
    "log_softmax",
    "log_uniform_candidate_sampler",
    "lrn",
    "max_pool",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_pool_v2",
    "max_pool_with_argmax",
    "moments",
    "nce_loss",
    "normalize_moments",
    "pool",
    "relu",
    "relu6",
    "relu_layer",
    "safe_embedding_lookup_sparse",
    "sampled_softmax_loss",
    "selu",
    "separable_conv2d",
    "sigmoid",
    "sigmoid_cross_entropy_with_logits",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits_v2",
    "softplus",
    "softsign",
    "space_to_batch",
    "space_to_depth",
    "sparse_softmax_cross_entropy_with_logits",
    "sufficient_statistics",
    "swish",
    "tanh",
    "top_k",
    "uniform_candidate_sampler",
    "weighted_cross_entropy_with_logits",
    "weighted_moments",
    "with_space_to_batch",
    "xw_plus_b",
    "zero_fraction",
]
