#!/usr/bin/env python3
"""Time training steps of standard models beside PyTorch, in turn, and print ratios.

usage: train_models.py --tilewright "PATH/tilewright train" --models FOLDER [--threads 2] [--rounds 2] [--seconds 8] [NET...]

NET: resnet50 mobilenet_v2 bert_base (default: all), as ../shared/models/make_standard_models.py writes them to FOLDER. A step is forward,
backward and plain SGD on one batch, statistics of BatchNormalization are the batch's. PyTorch runs eagerly and compiled, in its usual memory
format and with channels last; its figure is the best of these. An engine's figure is the least of its rounds' medians; x above 1: ours is
faster. Run by the Python of the environment `torch` of ../shared/peers/setup.sh. `train_models.py peer ...` is how it calls itself.
"""
import argparse
import json
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import time

import numpy as np

NETS = ("resnet50", "mobilenet_v2", "bert_base")
MODES = {"resnet50": ("eager", "eager-channels_last", "compile", "compile-channels_last"),
         "mobilenet_v2": ("eager", "eager-channels_last", "compile", "compile-channels_last"),
         "bert_base": ("eager", "compile")}
JOB = """model = "{model}"
loss = "{loss}"
steps = 20
batch = {batch}
statistics = "batch"
[data]
kind = "arrays"
file = "data.npz"
targets = "wanted output"
order = "order.npy"
[optimizer]
name = "sgd"
lr = 1e-3
"""


def write_job(net, batch, models, folder):
    random = np.random.default_rng(0)
    if net == "bert_base":
        inputs = {"input_ids": random.integers(0, 30000, (batch, 128)),
                  "attention_mask": np.ones((batch, 128), "i8"), "token_type_ids": np.zeros((batch, 128), "i8")}
        targets, loss = random.normal(0, 1, (batch, 128, 768)).astype("f4"), "mean_squares"
    else:
        inputs = {"input": random.normal(0, 1, (batch, 3, 224, 224)).astype("f4")}
        targets, loss = random.integers(0, 1000, batch), "cross_entropy"
    np.savez(os.path.join(folder, "data.npz"), **inputs, **{"wanted output": targets})
    np.save(os.path.join(folder, "order.npy"), np.tile(np.arange(batch), (20, 1)))
    model = os.path.join(os.path.abspath(models), f"{net}.onnx")
    with open(os.path.join(folder, "job.toml"), "w", encoding="utf-8") as file:
        file.write(JOB.format(model=model, loss=loss, batch=batch))


def networks():
    """The same networks as one writes them in PyTorch."""
    import torch
    from torch import nn
    from torch.nn import functional

    def conv(ins, outs, kernel, stride=1, groups=1, act=None):
        layers = [nn.Conv2d(ins, outs, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(outs)]
        return nn.Sequential(*layers, *([act(inplace=True)] if act else []))

    class Bottleneck(nn.Module):
        def __init__(self, ins, width, stride):
            super().__init__()
            self.main = nn.Sequential(conv(ins, width, 1, act=nn.ReLU), conv(width, width, 3, stride, act=nn.ReLU),
                                      conv(width, 4 * width, 1))
            other = stride != 1 or ins != 4 * width
            self.side = conv(ins, 4 * width, 1, stride) if other else nn.Identity()

        def forward(self, x):
            return functional.relu(self.main(x) + self.side(x))

    class Inverted(nn.Module):
        def __init__(self, ins, times, outs, stride):
            super().__init__()
            inner = ins * times
            first = [conv(ins, inner, 1, act=nn.ReLU6)] if times != 1 else []
            self.main = nn.Sequential(*first, conv(inner, inner, 3, stride, inner, nn.ReLU6), conv(inner, outs, 1))
            self.adds = ins == outs and stride == 1

        def forward(self, x):
            return x + self.main(x) if self.adds else self.main(x)

    class Images(nn.Module):
        def __init__(self, layers, channels):
            super().__init__()
            self.body, self.head = nn.Sequential(*layers), nn.Linear(channels, 1000)

        def forward(self, x):
            return self.head(self.body(x).mean((2, 3)))

    class Layer(nn.Module):
        def __init__(self, d=768, heads=12):
            super().__init__()
            self.heads = heads
            self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))
            self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
            self.first, self.second = nn.LayerNorm(d, 1e-12), nn.LayerNorm(d, 1e-12)

        def forward(self, x, mask):
            b, s, d = x.shape
            q, k, v = (f(x).view(b, s, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
            y = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).reshape(b, s, d)
            x = self.first(self.o(y) + x)
            return self.second(self.down(functional.gelu(self.up(x))) + x)

    class Bert(nn.Module):
        def __init__(self, d=768):
            super().__init__()
            self.words, self.kinds, self.places = nn.Embedding(30522, d), nn.Embedding(2, d), nn.Embedding(512, d)
            self.norm, self.layers = nn.LayerNorm(d, 1e-12), nn.ModuleList(Layer() for _ in range(12))

        def forward(self, ids, mask, kinds):
            x = self.norm(self.words(ids) + self.kinds(kinds) + self.places.weight[:ids.shape[1]])
            mask = (1 - mask[:, None, None].float()) * torch.finfo(torch.float32).min
            for layer in self.layers:
                x = layer(x, mask)
            return x

    def resnet50():
        layers, ins = [conv(3, 64, 7, 2, act=nn.ReLU), nn.MaxPool2d(3, 2, 1)], 64
        for stage, blocks in enumerate((3, 4, 6, 3)):
            for block in range(blocks):
                layers.append(Bottleneck(ins, 64 << stage, 2 if stage and block == 0 else 1))
                ins = 4 * (64 << stage)
        return Images(layers, ins)

    def mobilenet_v2():
        layers, ins = [conv(3, 32, 3, 2, act=nn.ReLU6)], 32
        for times, outs, blocks, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                            (6, 160, 3, 2), (6, 320, 1, 1)):
            for block in range(blocks):
                layers.append(Inverted(ins, times, outs, stride if block == 0 else 1))
                ins = outs
        return Images(layers + [conv(ins, 1280, 1, act=nn.ReLU6)], 1280)

    return {"resnet50": resnet50, "mobilenet_v2": mobilenet_v2, "bert_base": Bert}


def peer(net, folder, mode, threads, seconds):
    import torch
    from torch.nn import functional
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = networks()[net]()
    with np.load(os.path.join(folder, "data.npz")) as data:
        x = [torch.tensor(data[k]) for k in data.files if k != "wanted output"]
        y = torch.tensor(data["wanted output"])
    if mode.endswith("channels_last"):
        model = model.to(memory_format=torch.channels_last)
        x = [v.contiguous(memory_format=torch.channels_last) for v in x]
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    forward = torch.compile(model) if mode.startswith("compile") else model
    loss_of = functional.mse_loss if net == "bert_base" else functional.cross_entropy

    def step():
        optimizer.zero_grad()
        loss = loss_of(forward(*x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    for _ in range(2):
        step()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    print(json.dumps({"median_ms": 1e3 * float(np.median(times)),
                      "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}))


def once(command, threads):
    def pin():
        os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:threads]))
    done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=pin)
    if done.returncode != 0:
        print(f"{shlex.join(command)}: {done.stderr.strip()[-300:]}", file=sys.stderr)
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nets", nargs="*")
    parser.add_argument("--tilewright", default="tilewright train")
    parser.add_argument("--models", required=True)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=8)
    options = parser.parse_args()
    missing = False
    for net in options.nets or NETS:
        best = {}
        with tempfile.TemporaryDirectory() as folder:
            write_job(net, options.batch, options.models, folder)
            for _ in range(options.rounds):
                for engine in ("tilewright", *MODES[net]):
                    how = ["--seconds", str(options.seconds), "--threads", str(options.threads)]
                    command = [*shlex.split(options.tilewright), f"{folder}/job.toml", "--bench", "--json", *how]
                    if engine != "tilewright":
                        command = [sys.executable, os.path.abspath(__file__), "peer", net, folder, engine, *how[1::2]]
                    found = once(command, options.threads)
                    if found and found["median_ms"] < best.get(engine, {"median_ms": float("inf")})["median_ms"]:
                        best[engine] = found
        peers = [best[m]["median_ms"] for m in MODES[net] if m in best]
        texts = [f"{e} {r['median_ms']:.1f} ({r['peak_rss_mib']} MiB)" for e, r in best.items()]
        ratio = min(peers) / best["tilewright"]["median_ms"] if peers and "tilewright" in best else None
        missing |= ratio is None
        print(f"{net}, batch {options.batch}, {options.threads} threads, ms a step: {', '.join(texts)}; x "
              + (f"{ratio:.3f}" if ratio else "-"), flush=True)
    return 1 if missing else 0


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "peer":
        peer(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[6]), float(sys.argv[5]))
    else:
        sys.exit(main())
