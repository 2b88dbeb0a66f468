"""Files that an import must refuse, and why: the reasons go into refused.json."""
import json

import torch
import torch.nn.functional as F
from torch import nn


class UnknownOperators(nn.Module):
    """Two operators that no tile can compute from its surroundings, one of them twice."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 3, padding=1)
        self.spectral = nn.Module()
        self.register_buffer("filter", torch.ones(2, 12, 6))

    def forward(self, x):
        x = self.conv(x)
        x = torch.fft.irfft2(torch.fft.rfft2(x) * self.filter, s=(12, 10))
        x = torch.cumsum(torch.cumsum(x, 2), 3)
        return x.mean((2, 3))


class Attention(nn.Module):
    """Every pixel looks at every other one: a non-local block."""

    def __init__(self):
        super().__init__()
        self.query = nn.Conv2d(2, 2, 1)
        self.key = nn.Conv2d(2, 2, 1)
        self.value = nn.Conv2d(2, 2, 1)

    def forward(self, x):
        query, key, value = (layer(x).flatten(2) for layer in (self.query, self.key, self.value))
        weights = torch.softmax(query.transpose(1, 2) @ key, dim=-1)
        x = x + (value @ weights.transpose(1, 2)).view_as(x)
        return x.mean((2, 3))


class WriteThroughView(nn.Module):
    """Half of the channels change in place, and then all of them are read."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, padding=1)

    def forward(self, x):
        x = self.conv(x)
        x[:, :2].mul_(2.0)
        return x.mean((2, 3))


class OneSize(nn.Module):
    """A linear layer for each pixel of maps of one size."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 3, padding=1)
        self.linear = nn.Linear(2 * 12 * 10, 3)

    def forward(self, x):
        return self.linear(self.conv(x).view(-1, 2 * 12 * 10))


class PaddedForOneSize(nn.Module):
    """Padding whose amounts follow from the size in Python, and so are numbers in the file."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 3, 2)

    def forward(self, x):
        over = [max(((length + 1) // 2 - 1) * 2 + 3 - length, 0) for length in x.shape[2:]]
        x = F.pad(x, [over[1] // 2, over[1] - over[1] // 2, over[0] // 2, over[0] - over[0] // 2])
        return self.conv(x).mean((2, 3))


class Plain(nn.Module):
    """Nothing special; decomposed into other operators, or frozen, it is refused."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 3, padding=1)
        self.bn = nn.BatchNorm2d(2)
        self.linear = nn.Linear(2, 3)

    def forward(self, x):
        return self.linear(F.relu(self.bn(self.conv(x))).mean((2, 3)))


class RunningInstanceNorm(nn.Module):
    """An instance norm with running statistics."""

    def __init__(self):
        super().__init__()
        self.norm = nn.InstanceNorm2d(2, track_running_stats=True)

    def forward(self, x):
        return self.norm(x).square().mean((2, 3))


class Branching(nn.Module):
    """A branch that is chosen by what the image shows."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 3, padding=1)

    def forward(self, x):
        x = self.conv(x)
        x = torch.cond(x.sum() > 0, lambda y: y * 2.0, lambda y: y * 3.0, (x,))
        return x.mean((2, 3))


class OverlappingParameters(nn.Module):
    """Two parameters that share a part of their memory."""

    def __init__(self):
        super().__init__()
        both = torch.ones(3, 2, 1, 1)
        self.first = nn.Parameter(both[:2])
        self.second = nn.Parameter(both[1:])

    def forward(self, x):
        return F.conv2d(F.conv2d(x, self.first), self.second).mean((2, 3))


class TwoInputs(nn.Module):
    """An image and something else."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 3, padding=1)

    def forward(self, x, other):
        return (self.conv(x) + other).mean((2, 3))


IMAGE = (2, 12, 10)

# Name: (net, why it is refused, texts that the sentence must contain, another size of the image)
EXPORTS = {
    "unknown_operators": (UnknownOperators, "operators that are not known are all named, with how "
                          "often they occur and where",
                          ["fft_rfft2", "fft_irfft2", "cumsum", "2"], None),
    "attention": (Attention, "every pixel reads every other one", ["attention"], None),
    "write_through_view": (WriteThroughView, "a value is changed through a view of a part of it "
                           "and read afterwards", ["mul_"], None),
    "one_size": (OneSize, "a linear layer has a weight for each pixel of the exported size",
                 ["linear"], (15, 11)),
    "padded_for_one_size": (PaddedForOneSize, "amounts of padding are numbers for the exported "
                            "size", ["pad", "dynamic_shapes"], (15, 11)),
    "running_instance_norm": (RunningInstanceNorm, "an instance norm has running statistics",
                              ["norm"], None),
    "branching": (Branching, "which branch is taken depends on the image", ["cond"], None),
    "overlapping_parameters": (OverlappingParameters, "two parameters overlap in memory",
                               ["first", "second"], None),
    "two_inputs": (TwoInputs, "it reads two inputs", ["input"], None),
}


def write(folder, version, fill, image_of, save):
    image = image_of("refused", IMAGE)
    if version < (2, 0):
        frozen = torch.jit.freeze(torch.jit.script(fill(Plain().eval())))
        return torch.jit.save(frozen, str(folder / "frozen.refused.pt"))
    if version < (2, 9):
        return None
    reasons = {}
    for name, (kind, reason, mentions, size) in EXPORTS.items():
        inputs = (image, image) if kind is TwoInputs else (image,)
        save(torch.export.export(fill(kind().train()), inputs), f"{name}.refused.pt2")
        reasons[f"{name}.refused.pt2"] = {"reason": reason, "mentions": mentions}
        if size:
            reasons[f"{name}.refused.pt2"]["image_size"] = size
    plain = torch.export.export(fill(Plain().train()), (image,)).run_decompositions()
    save(plain, "decomposed.refused.pt2")
    reasons["decomposed.refused.pt2"] = {
        "reason": "run_decompositions() has replaced its operators",
        "mentions": ["run_decompositions"]}
    reasons["frozen.refused.pt"] = {
        "reason": "torch.jit.freeze has removed the names of its parameters",
        "mentions": ["freeze"]}
    (folder / "refused.json").write_text(json.dumps(reasons, indent=1) + "\n")
    return None

