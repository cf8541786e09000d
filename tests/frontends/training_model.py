"""What `tilewright train` computes, in NumPy and f64: losses, optimisers, schedules, and numbers that are drawn."""
import numpy as np


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def loss_and_slope(kind, y, t):
    """Of a mean over a batch, and its derivative by y."""
    if kind == "mean_squares":
        return ((y - t) ** 2).mean(), 2 * (y - t) / y.size
    if kind == "logistic":
        return (np.logaddexp(0, y) - y * t).mean(), (1 / (1 + np.exp(-y)) - t) / y.size
    if kind == "output":
        return y.mean(), np.full(y.shape, 1 / y.size)
    p, rows = softmax(y), np.arange(len(y))
    return -np.log(p[rows, t]).mean(), (p - np.eye(y.shape[1])[t]) / len(y)


def hits(kind, y, t):
    """Which predictions are right; None: the loss has none."""
    if kind == "cross_entropy":
        return y.argmax(-1) == t
    return (y > 0) == (t > 0.5) if kind == "logistic" else None


def update(o, step, p, g, s):
    """torch.optim, step by step, and LAMB's paper; s: what the optimiser keeps, by the names of checkpoints."""
    usual = {"adagrad": 1e-10, "lamb": 1e-6}.get(o["name"], 1e-8)
    decay, lr, eps = o.get("weight_decay", 0), o["lr"], o.get("eps", usual)
    if o["name"] == "adamw":
        p = p * (1 - lr * decay)
    elif o["name"] != "lamb":
        g = g + decay * p
    if o["name"] == "sgd":
        s["momentum"] = o.get("momentum", 0) * s.get("momentum", 0) + g
        return p - lr * (g + o.get("momentum", 0) * s["momentum"] if o.get("nesterov") else s["momentum"])
    if o["name"] == "adagrad":
        s["sum"] = s.get("sum", 0) + g * g
        return p - lr * g / (np.sqrt(s["sum"]) + eps)
    if o["name"] == "rmsprop":
        alpha = o.get("alpha", 0.99)
        s["square"] = alpha * s.get("square", 0) + (1 - alpha) * g * g
        s["momentum"] = o.get("momentum", 0) * s.get("momentum", 0) + g / (np.sqrt(s["square"]) + eps)
        return p - lr * s["momentum"]
    b1, b2 = o.get("betas", [0.9, 0.999])
    s["mean"] = b1 * s.get("mean", 0) + (1 - b1) * g
    s["square"] = b2 * s.get("square", 0) + (1 - b2) * g * g
    mean, square = s["mean"] / (1 - b1 ** (step + 1)), s["square"] / (1 - b2 ** (step + 1))
    change = mean / (np.sqrt(square) + eps)
    if o["name"] == "lamb":
        change = change + decay * p
        if p.any() and change.any():
            change = change * np.linalg.norm(p) / np.linalg.norm(change)
    return p - lr * change


def kept_states(o):
    """The names of what an optimiser keeps from step to step."""
    momentum = ["momentum"] if o.get("momentum") else []
    return {"sgd": momentum, "rmsprop": ["square", *momentum], "adagrad": ["sum"]}.get(o["name"], ["mean", "square"])


def clipped(o, gradients):
    """A dict of gradients as torch.nn.utils.clip_grad_value_ and then clip_grad_norm_ leave them."""
    if o.get("clip_value"):
        gradients = {k: np.clip(g, -o["clip_value"], o["clip_value"]) for k, g in gradients.items()}
    if o.get("clip_norm"):
        norm = np.sqrt(sum((g * g).sum() for g in gradients.values()))
        gradients = {k: g * min(1, o["clip_norm"] / (norm + 1e-6)) for k, g in gradients.items()}
    return gradients


def rate(lr, schedule, steps, step):
    """The learning rate of a step, of a job with so many."""
    warmup = schedule.get("warmup", 0)
    if step < warmup:
        return lr * (step + 1) / warmup
    since = step - warmup
    if schedule.get("kind") == "step":
        return lr * schedule["gamma"] ** (since // schedule["every"])
    if schedule.get("kind") == "cosine":
        least = schedule.get("least", 0)
        return least + (lr - least) * (1 + np.cos(np.pi * since / (steps - warmup))) / 2
    return lr


MASK, WORD = (1 << 64) - 1, np.uint64(0xffffffff)


def philox(counter, key):
    """Philox4x32-10 (Salmon et al., 2011): four words for each counter of four (arrays), two of a key."""
    c = [np.asarray(k, "u8") for k in np.broadcast_arrays(*counter)]
    for n in range(10):
        k = [np.uint64((word + n * weyl) & 0xffffffff) for word, weyl in zip(key, (0x9E3779B9, 0xBB67AE85))]
        first, second = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(second >> np.uint64(32)) ^ c[1] ^ k[0], second & WORD,
             (first >> np.uint64(32)) ^ c[3] ^ k[1], first & WORD]
    return c


def step_key(seed, step):
    """Of a training step."""
    words = philox([step & 0xffffffff, step >> 32, 0xffffffff, 0xffffffff], (seed & 0xffffffff, seed >> 32))
    return int(words[0]), int(words[1])


def run_key(seed, run):
    """Of a run of a session (SplitMix64 of Steele, Lea and Flood, 2014)."""
    z = (seed + (run + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    z ^= z >> 31
    return z & 0xffffffff, z >> 32


def words_of_samples(key, stream, ids, each):
    """[4][len(ids), each]: what is drawn for samples of the data, whatever batch they are in."""
    ids = np.asarray(ids, "u8")[:, None]
    return philox([np.arange(each)[None], ids & WORD, stream, ids >> np.uint64(32)], key)


def words_of_places(key, stream, rows, each):
    """[4][rows, each]: what is drawn for places in a tensor."""
    return philox([np.arange(rows * each).reshape(rows, each), 0, stream, 0], key)


def uniform(words):
    """In [0, 1), of 24 bits."""
    return (words[0] >> np.uint64(8)) * 2.0 ** -24


def normal(words):
    """Of mean 0 and variance 1, by Box and Muller."""
    radius = (words[0] >> np.uint64(1)) * 2.0 ** -31 + 2.0 ** -32
    return np.sqrt(-2 * np.log(radius)) * np.cos((words[1] >> np.uint64(8)) * (2 * np.pi * 2.0 ** -24))
