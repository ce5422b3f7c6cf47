"""The same work written by hand in JAX: whole steps under jit, buffers donated.

Metric names are those of the programs; inputs come from the same numpy seeds, arrive as numpy arrays each
step, and the loss goes back to Python each step.
"""

import functools

import data
import jax
import jax.numpy as jnp
import numpy as np
from programs import two_devices as two_devices_program


def cross_entropy(logits, labels):
    logp = jax.nn.log_softmax(logits)
    return -jnp.mean(jnp.take_along_axis(logp, labels[:, None], 1))


def sgd(lr):
    def update(params, state, grads):
        return jax.tree.map(lambda p, g: p - lr * g, params, grads), state
    return (lambda params: ()), update


def adam(lr, b1=0.9, b2=0.999, eps=1e-8):
    def init(params):
        zeros = jax.tree.map(jnp.zeros_like, params)
        return jnp.zeros([], jnp.float32), zeros, jax.tree.map(jnp.zeros_like, params)

    def update(params, state, grads):
        t, m, v = state
        t = t + 1
        m = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, m, grads)
        v = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, v, grads)
        rate = lr * jnp.sqrt(1 - b2 ** t) / (1 - b1 ** t)
        params = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + eps), params, m, v)
        return params, (t, m, v)
    return init, update


def trainer(loss_fn, params, optimizer, batches):
    """step(i) -> loss, for loss_fn(params, *batch)."""
    init, update = optimizer
    box = [jax.tree.map(jnp.array, params)]
    box.append(init(box[0]))

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def train(params, state, batch):
        loss, grads = jax.value_and_grad(loss_fn)(params, *batch)
        params, state = update(params, state, grads)
        return params, state, loss

    def step(i):
        box[0], box[1], loss = train(box[0], box[1], batches[i % len(batches)])
        return float(loss)
    return step


def session_overhead(b):
    f = jax.jit(lambda a: a * a + a)
    x = np.float32(3)
    how = dict(seconds=1.5, warmup=200, inner=200)
    b.latency("scalar_us", lambda: float(f(x)), **how)
    nothing = jax.jit(lambda: None)
    b.latency("noop_us", nothing, **how)
    many = jax.jit(lambda *xs: [x + 1.0 for x in xs])
    args = [x] * 20
    b.latency("feed20_fetch20_us", lambda: [np.asarray(y) for y in many(*args)],
              **dict(how, inner=50))


def two_devices(b):
    """The step that computes 16 MB and takes one number of them, on the same device or on another; and a
    plain transfer."""
    jax.config.update("jax_num_cpu_devices", 2)
    one, two = jax.devices("cpu")[:2]
    v = jax.device_put(np.ones(two_devices_program.LARGE, np.float32), one)
    scale = jax.jit(lambda v, x: (v * x, v[:1] * x))
    gather = jax.jit(lambda large, i: large[i])

    def step(x, where):
        large, first = scale(v, x)
        i = np.int32(np.unique(np.asarray(first)).size - 1)
        return float(gather(jax.device_put(large, where), i))

    transfer = two_devices_program.transfer
    transfer(b, "transfer", lambda x: step(x, one), lambda x: step(x, two))
    transfer(b, "read", lambda x: None, lambda x: jax.device_put(v, two).block_until_ready())


def mlp_loss(params, x, y):
    for i, (w, bias) in enumerate(params):
        x = (jax.nn.relu(x) if i else x) @ w + bias
    return cross_entropy(x, y)


def mlp_train(b):
    for name, opt in (("sgd_", sgd(0.05)), ("adam_", adam(1e-3))):
        batches = [(x, y.astype(np.int32)) for x, y in data.image_batches(128, (784,))]
        b.train(name, trainer(mlp_loss, data.mlp_weights(), opt, batches))


def lstm_train(b):
    n, hidden = data.LSTM["batch"], data.LSTM["hidden"]

    def loss_fn(params, inputs, y, c, h):
        """inputs: embedded words [T, batch, hidden]"""
        def cell(carry, x):
            c, h = carry
            z = jnp.concatenate([x, h], 1) @ params["kernel"] + params["bias"]
            gi, gj, gf, go = jnp.split(z, 4, 1)
            c = c * jax.nn.sigmoid(gf + 1.0) + jax.nn.sigmoid(gi) * jnp.tanh(gj)
            h = jnp.tanh(c) * jax.nn.sigmoid(go)
            return (c, h), h

        (c, h), out = jax.lax.scan(cell, (c, h), inputs)
        logits = out.reshape(-1, hidden) @ params["softmax_w"] + params["softmax_b"]
        return cross_entropy(logits, y.T.reshape(-1)), (c, h)

    @functools.partial(jax.jit, donate_argnums=(0, 1, 2, 3))
    def train(params, embedding, c, h, x, y):
        ids = x.T
        f = jax.value_and_grad(loss_fn, argnums=(0, 1), has_aux=True)
        (loss, (c, h)), (grads, g) = f(params, embedding[ids], y, c, h)
        # As TensorFlow does, the norm takes the embedding's rows one by one.
        norm = jnp.sqrt(sum(jnp.sum(v * v) for v in list(grads.values()) + [g]))
        k = 0.25 / jnp.maximum(norm, 0.25)
        params = {name: v - k * grads[name] for name, v in params.items()}
        return params, embedding.at[ids].add(-k * g), c, h, loss

    params = {k: jnp.array(v) for k, v in data.lstm_weights().items()}
    embedding = params.pop("embedding")
    box = [params, embedding, jnp.zeros((n, hidden)), jnp.zeros((n, hidden))]
    batches = data.lstm_batches()

    def step(i):
        *box[:], loss = train(*box, *batches[i % data.POOL])
        return float(loss)

    b.train("", step, k=10, seconds=8)
    b.peak_rss()
