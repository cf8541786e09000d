"""Small networks as one writes them in PyTorch, of kinds that the reference training runs do not have.

NETWORKS: name -> (class, batch, inputs, targets, loss). Inputs by name, and targets: ("floats", shape) or ("numbers", shape, below), without the
batch; loss as job files name it.
"""
import torch
from torch import nn
from torch.nn import functional


def conv(ins, outs, kernel=3, stride=1, groups=1, act=nn.ReLU):
    return nn.Sequential(nn.Conv2d(ins, outs, kernel, stride, kernel // 2, groups=groups, bias=False),
                         nn.BatchNorm2d(outs), act())


class Heads(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).reshape(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(b, t, d))


class GruTagger(nn.Module):
    """Two layers in both directions."""

    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(200, 96), nn.Linear(256, 5)
        self.layers = nn.GRU(96, 128, 2, batch_first=True, bidirectional=True)

    def forward(self, x):
        return self.head(self.layers(self.embed(x))[0].mean(1))


class Translator(nn.Module):
    """Encoder, decoder and the attention of one to the other."""

    def __init__(self):
        super().__init__()
        self.source, self.target = nn.Embedding(100, 64), nn.Embedding(120, 64)
        self.encoder, self.decoder = nn.GRU(64, 96, batch_first=True), nn.GRU(64, 96, batch_first=True)
        self.score, self.head = nn.Linear(96, 96, bias=False), nn.Linear(192, 120)

    def forward(self, x, y):
        states, last = self.encoder(self.source(x))
        found, _ = self.decoder(self.target(y), last)
        context = torch.softmax(self.score(found) @ states.transpose(1, 2), -1) @ states
        return self.head(torch.cat([found, context], -1))


class Lines(nn.Module):
    """Convolutions, then an LSTM along the columns of an image."""

    def __init__(self):
        super().__init__()
        self.image = nn.Sequential(conv(1, 32), nn.MaxPool2d(2), conv(32, 64), nn.MaxPool2d((2, 1)))
        self.lstm, self.head = nn.LSTM(512, 96, batch_first=True, bidirectional=True), nn.Linear(192, 37)

    def forward(self, x):
        return self.head(self.lstm(self.image(x).permute(0, 3, 1, 2).flatten(2))[0])


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, 32, 3, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(32, 64, 3, 2, 1),
                                  nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(3136, 32))
        self.up, self.out = nn.Linear(32, 3136), nn.ConvTranspose2d(32, 1, 4, 2, 1)
        self.middle = nn.ConvTranspose2d(64, 32, 4, 2, 1)

    def forward(self, x):
        x = functional.elu(self.up(self.down(x))).reshape(-1, 64, 7, 7)
        return torch.sigmoid(self.out(functional.elu(self.middle(x))))


class Segments(nn.Module):
    """A U-Net of two levels, with batch normalisation."""

    def __init__(self):
        super().__init__()
        self.left = nn.Sequential(conv(3, 24), conv(24, 24))
        self.low = nn.Sequential(nn.MaxPool2d(2), conv(24, 48), conv(48, 48), nn.ConvTranspose2d(48, 24, 2, 2))
        self.right = nn.Sequential(conv(48, 24), conv(24, 24), nn.Conv2d(24, 6, 1))

    def forward(self, x):
        x = self.left(x)
        return self.right(torch.cat([self.low(x), x], 1)).permute(0, 2, 3, 1)


class Dilated(nn.Module):
    """Causal convolutions of growing dilation, gated."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv1d(12, 64, 1), nn.Conv1d(64, 9, 1)
        self.wide = nn.ModuleList(nn.Conv1d(64, 128, 3, dilation=2 ** i) for i in range(5))
        self.narrow = nn.ModuleList(nn.Conv1d(64, 64, 1) for _ in range(5))

    def forward(self, x):
        x = self.first(x)
        for i, (wide, narrow) in enumerate(zip(self.wide, self.narrow)):
            a, b = wide(functional.pad(x, (4 * 2 ** i // 2, 0))).chunk(2, 1)
            x = x + narrow(torch.tanh(a) * torch.sigmoid(b))
        return self.last(functional.relu(x)).transpose(1, 2)


class Depthwise(nn.Module):
    """Windows of 7 for each channel, normalised over channels, then products."""

    def __init__(self):
        super().__init__()
        self.stem, self.head = nn.Conv2d(3, 48, 4, 4), nn.Linear(48, 100)
        self.window, self.norm = nn.Conv2d(48, 48, 7, padding=3, groups=48), nn.LayerNorm(48)
        self.up, self.down = nn.Linear(48, 192), nn.Linear(192, 48)

    def forward(self, x):
        x = self.stem(x)
        y = self.down(functional.gelu(self.up(self.norm(self.window(x).permute(0, 2, 3, 1)))))
        return self.head((x + y.permute(0, 3, 1, 2)).mean((2, 3)))


class Excited(nn.Module):
    """Inverted bottlenecks with squeeze and excitation."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(conv(3, 16, stride=2, act=nn.SiLU), conv(16, 64, 1, act=nn.SiLU),
                                   conv(64, 64, 5, 2, 64, nn.SiLU))
        self.squeeze, self.excite = nn.Conv2d(64, 16, 1), nn.Conv2d(16, 64, 1)
        self.last, self.head = conv(64, 40, 1, act=nn.SiLU), nn.Linear(40, 100)

    def forward(self, x):
        x = self.first(x)
        s = torch.sigmoid(self.excite(functional.silu(self.squeeze(x.mean((2, 3), keepdim=True)))))
        return self.head(self.last(x * s).mean((2, 3)))


class Shuffled(nn.Module):
    """Groups of channels that change places, and one window each."""

    def __init__(self):
        super().__init__()
        self.stem, self.head = conv(3, 64, stride=2), nn.Linear(64, 50)
        self.first, self.window = conv(64, 64, 1, groups=4), conv(64, 64, 3, groups=64)
        self.last = nn.Conv2d(64, 64, 1, groups=4, bias=False)

    def forward(self, x):
        x = self.stem(x)
        y = self.first(x)
        b, c, h, w = y.shape
        y = y.reshape(b, 4, c // 4, h, w).transpose(1, 2).reshape(b, c, h, w)
        return self.head(functional.relu(x + self.last(self.window(y))).mean((2, 3)))


class Style(nn.Module):
    """Reflected borders, norms of groups and instances, a bilinear resize."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 32, 9), nn.Conv2d(32, 64, 3, 2, 1)
        self.groups, self.instances = nn.GroupNorm(8, 32), nn.InstanceNorm2d(64, affine=True)
        self.third, self.last = nn.Conv2d(64, 32, 3, 1, 1), nn.Conv2d(32, 3, 3, 1, 1)

    def forward(self, x):
        x = functional.relu(self.groups(self.first(functional.pad(x, (4, 4, 4, 4), mode="reflect"))))
        x = functional.relu(self.instances(self.second(x)))
        x = functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        return torch.tanh(self.last(functional.relu(self.third(x))))


class Conformer(nn.Module):
    def __init__(self, d=144):
        super().__init__()
        self.enter, self.heads, self.head = nn.Linear(80, d), Heads(d, 4), nn.Linear(d, 40)
        self.feed = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.SiLU(), nn.Linear(4 * d, d))
        self.before, self.norm, self.batch = nn.LayerNorm(d), nn.LayerNorm(d), nn.BatchNorm1d(d)
        self.gate, self.window = nn.Conv1d(d, 2 * d, 1), nn.Conv1d(d, d, 15, padding=7, groups=d, bias=False)

    def forward(self, x):
        x = self.enter(x)
        x = x + 0.5 * self.feed(x)
        x = x + self.heads(self.before(x))
        y = functional.glu(self.gate(self.norm(x).transpose(1, 2)), 1)
        return self.head(x + functional.silu(self.batch(self.window(y))).transpose(1, 2))


class Clicks(nn.Module):
    """Embeddings of several sizes, and the products of all pairs."""

    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(n, 32) for n in (10000, 5000, 1000, 300, 50, 7))
        self.bottom = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(81, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, x, c):
        d = self.bottom(x)
        all_of = torch.stack([d] + [table(c[:, i]) for i, table in enumerate(self.tables)], 1)
        return self.top(torch.cat([d, (all_of @ all_of.transpose(1, 2)).flatten(1)], 1))


NETWORKS = {
    "gru_tagger": (GruTagger, 32, {"x": ("numbers", (48,), 200)}, ("numbers", (), 5), "cross_entropy"),
    "translator": (Translator, 32, {"x": ("numbers", (20,), 100), "y": ("numbers", (24,), 120)},
                   ("numbers", (24,), 120), "cross_entropy"),
    "lines": (Lines, 16, {"x": ("floats", (1, 32, 100))}, ("numbers", (50,), 37), "cross_entropy"),
    "autoencoder": (Autoencoder, 64, {"x": ("floats", (1, 28, 28))}, ("floats", (1, 28, 28)), "mean_squares"),
    "segments": (Segments, 4, {"x": ("floats", (3, 64, 64))}, ("numbers", (64, 64), 6), "cross_entropy"),
    "dilated": (Dilated, 16, {"x": ("floats", (12, 200))}, ("numbers", (200,), 9), "cross_entropy"),
    "depthwise": (Depthwise, 16, {"x": ("floats", (3, 64, 64))}, ("numbers", (), 100), "cross_entropy"),
    "excited": (Excited, 16, {"x": ("floats", (3, 96, 96))}, ("numbers", (), 100), "cross_entropy"),
    "shuffled": (Shuffled, 16, {"x": ("floats", (3, 64, 64))}, ("numbers", (), 50), "cross_entropy"),
    "style": (Style, 4, {"x": ("floats", (3, 64, 64))}, ("floats", (3, 64, 64)), "mean_squares"),
    "conformer": (Conformer, 8, {"x": ("floats", (120, 80))}, ("numbers", (120,), 40), "cross_entropy"),
    "clicks": (Clicks, 256, {"x": ("floats", (13,)), "c": ("numbers", (6,), 7)}, ("floats", (1,)), "mean_squares"),
}
