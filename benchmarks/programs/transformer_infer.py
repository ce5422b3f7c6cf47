"""A small GPT-2: 4 layers, width 256, 8 heads, vocabulary 5000, batch 4.

prefill   one forward pass over 128 tokens
concat    64 tokens sampled in a while_loop; keys and values are concatenated
          each time, so shapes grow (the way of OpenAI's gpt-2 sample.py)
fixed     the same with keys and values in buffers of fixed shape
"""
import data
import numpy as np

C = data.GPT
HEAD = C["d"] // C["heads"]


def variables(tf):
    return {k: tf.Variable(v, name=k) for k, v in data.gpt_weights().items()}


def norm(tf, x, w, p):
    mean = tf.reduce_mean(x, -1, keepdims=True)
    var = tf.reduce_mean(tf.square(x - mean), -1, keepdims=True)
    return (x - mean) * tf.rsqrt(var + 1e-5) * w[p + "/g"] + w[p + "/b"]


def linear(tf, x, w, p):
    """x [batch, length, m] @ w [m, n]"""
    s = tf.shape(x)
    m, n = (int(v) for v in w[p + "/w"].shape)
    y = tf.matmul(tf.reshape(x, [-1, m]), w[p + "/w"]) + w[p + "/b"]
    return tf.reshape(y, [s[0], s[1], n])


def gelu(tf, x):
    return 0.5 * x * (1 + tf.tanh(np.float32(np.sqrt(2 / np.pi)) * (x + 0.044715 * tf.pow(x, 3))))


def split_heads(tf, x):
    s = tf.shape(x)
    return tf.transpose(tf.reshape(x, [s[0], s[1], C["heads"], HEAD]), [0, 2, 1, 3])


def merge_heads(tf, x):
    s = tf.shape(x)
    return tf.reshape(tf.transpose(x, [0, 2, 1, 3]), [s[0], s[2], C["d"]])


def transformer(tf, w, ids, start, memory):
    """Logits of the last position.

    ids [batch, length] are at positions start, start + 1, ...
    memory(layer, k, v) keeps k, v [batch, heads, length, head] and returns the
    keys, the values and a mask [length, keys] of what may be looked at.
    """
    length = tf.shape(ids)[1]
    x = tf.gather(w["wte"], ids) + tf.gather(w["wpe"], start + tf.range(length))
    for layer in range(C["layers"]):
        p = "h%d/" % layer
        q, k, v = (split_heads(tf, part) for part in tf.split(
            linear(tf, norm(tf, x, w, p + "ln_1"), w, p + "qkv"), 3, 2))
        k, v, mask = memory(layer, k, v)
        a = tf.matmul(q, k, transpose_b=True) * np.float32(1 / np.sqrt(HEAD))
        a = tf.nn.softmax(a * mask - 1e10 * (1 - mask))
        x = x + linear(tf, merge_heads(tf, tf.matmul(a, v)), w, p + "proj")
        h = gelu(tf, linear(tf, norm(tf, x, w, p + "ln_2"), w, p + "fc"))
        x = x + linear(tf, h, w, p + "out")
    x = norm(tf, x, w, "ln_f")
    return tf.matmul(x[:, -1, :], w["wte"], transpose_b=True)


def choose(tf, logits, noise):
    """Top-k sampling with given Gumbel noise."""
    values, _ = tf.nn.top_k(logits, C["top_k"])
    logits = tf.where(logits < values[:, -1:], tf.ones_like(logits) * -1e10, logits)
    return tf.cast(tf.argmax(logits + noise, 1), tf.int32)


def causal(tf, new, old):
    """[new, old + new] mask: position i sees everything up to old + i."""
    i = tf.range(new)[:, None] + old
    return tf.cast(i >= tf.range(old + new)[None, :], tf.float32)


def prefill(tf, w, ids):
    """Logits, and the keys and values of every layer."""
    kept = []

    def memory(layer, k, v):
        kept.append((k, v))
        return k, v, causal(tf, tf.shape(ids)[1], 0)

    return transformer(tf, w, ids, 0, memory), kept


def sample_concat(tf, w, prompt, noise):
    """while_loop whose keys and values grow: past [layer, 2, batch, heads, t, head]"""
    logits, kept = prefill(tf, w, prompt)
    past = tf.stack([tf.stack([k, v]) for k, v in kept])
    first = choose(tf, logits, noise[0])

    def body(i, ids, past, prev):
        old = tf.shape(past)[4]
        present = []

        def memory(layer, k, v):
            k = tf.concat([past[layer, 0], k], 2)
            v = tf.concat([past[layer, 1], v], 2)
            present.append(tf.stack([k, v]))
            return k, v, causal(tf, 1, old)

        logits = transformer(tf, w, prev[:, None], old, memory)
        prev = choose(tf, logits, noise[i])
        return i + 1, tf.concat([ids, prev[:, None]], 1), tf.stack(present), prev

    n = C["batch"]
    _, ids, _, _ = tf.while_loop(
        lambda i, *_: i < C["new"], body, [tf.constant(1), first[:, None], past, first],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([n, None]),
                          tf.TensorShape([C["layers"], 2, n, C["heads"], None, HEAD]),
                          tf.TensorShape([n])],
        back_prop=False)
    return ids


def sample_fixed(tf, w, prompt, noise):
    """while_loop with one fixed buffer [t, batch, heads, head] for each layer's
    keys and one for its values."""
    total = C["prompt"] + C["new"]
    n = C["batch"]
    logits, kept = prefill(tf, w, prompt)
    room = [[0, C["new"]], [0, 0], [0, 0], [0, 0]]
    buffers = [tf.pad(tf.transpose(t, [2, 0, 1, 3]), room) for kv in kept for t in kv]
    for t in buffers:
        t.set_shape([total, n, C["heads"], HEAD])
    first = choose(tf, logits, noise[0])
    tokens = tf.TensorArray(tf.int32, C["new"]).write(0, first)

    def body(i, tokens, prev, *buffers):
        pos = C["prompt"] + i - 1
        buffers = list(buffers)
        mask = tf.cast(tf.range(total) <= pos, tf.float32)[None, :]

        def memory(layer, k, v):
            out = []
            for j, t in ((2 * layer, k), (2 * layer + 1, v)):
                t = tf.reshape(t, [1, n, C["heads"], HEAD])
                buffers[j] = tf.tensor_scatter_nd_update(buffers[j], [[pos]], t)
                out.append(tf.transpose(buffers[j], [1, 2, 0, 3]))
            return out[0], out[1], mask

        logits = transformer(tf, w, prev[:, None], pos, memory)
        prev = choose(tf, logits, noise[i])
        return [i + 1, tokens.write(i, prev), prev] + buffers

    out = tf.while_loop(lambda i, *_: i < C["new"], body,
                        [tf.constant(1), tokens, first] + buffers, back_prop=False)
    return tf.transpose(out[1].stack())


def build(tf):
    w = variables(tf)
    n = C["batch"]
    prompt = tf.placeholder(tf.int32, [n, C["prompt"]])
    long = tf.placeholder(tf.int32, [n, C["prefill"]])
    noise = tf.placeholder(tf.float32, [C["new"], n, C["vocab"]])
    return dict(prompt=prompt, long=long, noise=noise,
                prefill=prefill(tf, w, long)[0],
                concat=sample_concat(tf, w, prompt, noise),
                fixed=sample_fixed(tf, w, prompt, noise),
                init=tf.global_variables_initializer(), inputs=data.gpt_inputs())


def step(sess, m, what):
    prompt, long, noise = m["inputs"]
    if what == "prefill":
        return sess.run(m["prefill"], {m["long"]: long})
    return sess.run(m[what], {m["prompt"]: prompt, m["noise"]: noise})


def run(tf, b):
    with tf.Graph().as_default(), tf.Session() as sess:
        m = b.once("build_s", lambda: build(tf))
        sess.run(m["init"])
        tokens = C["batch"] * C["new"]
        logits = b.once("prefill_first_s", lambda: step(sess, m, "prefill"))
        b.report("prefill_logits_l2", float(np.sqrt((logits ** 2).sum())), "check")
        b.latency("prefill_ms", lambda: step(sess, m, "prefill"), unit="ms", seconds=2)
        for what in ("concat", "fixed"):
            ids = b.once(what + "_first_s", lambda: step(sess, m, what))
            b.report(what + "_token_sum", int(ids.sum()), "check")
            b.rate(what + "_tokens_per_s", lambda: step(sess, m, what), calls=tokens,
                   unit="tokens/s", seconds=3, warmup=1)
