"""AmoebaNet-D as mpi4dl trains it, as PyTorch modules: names of parameters are the same, so
load_state_dict takes an exported file as it is."""
import torch
from torch import nn

# Pairs of (state, operator); each pair's results are added and give the next state. States 0 and 1
# come from the cell's inputs. Then: the states that make the cell's output.
NORMAL = ([(1, "conv1x1"), (1, "avg3"),
           (1, "none"), (0, "conv1x7_7x1"),
           (0, "conv1x1"), (0, "conv1x7_7x1"),
           (2, "avg3"), (2, "none"),
           (1, "avg3"), (5, "conv1x1")], [0, 3, 4, 6])
REDUCTION = ([(0, "maxpool2"), (0, "avg3"),
              (2, "none"), (1, "conv3x3"),
              (2, "conv1x7_7x1"), (2, "avg3"),
              (3, "none"), (1, "maxpool2"),
              (2, "avg3"), (3, "conv1x1")], [4, 5, 6])


def conv(inputs, outputs, kernel=(1, 1), stride=(1, 1)):
    return nn.Conv2d(inputs, outputs, kernel, stride, (kernel[0] // 2, kernel[1] // 2), bias=False)


class ReluConvBn(nn.Module):
    """ReLU, convolution, batch norm, once for each convolution; numbered where there are several."""

    def __init__(self, *convolutions):
        super().__init__()
        self.layers = []
        for number, convolution in enumerate(convolutions, 1):
            suffix = str(number) if len(convolutions) > 1 else ""
            norm = nn.BatchNorm2d(convolution.out_channels)
            self.add_module("conv" + suffix, convolution)
            self.add_module("bn" + suffix, norm)
            self.layers.append((convolution, norm))

    def forward(self, x):
        for convolution, norm in self.layers:
            x = norm(convolution(torch.relu(x)))
        return x


class FactorizedReduce(nn.Module):
    """Halves the map by two 1x1 convolutions, each giving half of the channels."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv1 = conv(inputs, outputs // 2, stride=(2, 2))
        self.conv2 = conv(inputs, outputs // 2, stride=(2, 2))
        self.bn = nn.BatchNorm2d(outputs)

    def forward(self, x):
        x = torch.relu(x)
        return self.bn(torch.cat([self.conv1(x), self.conv2(x)], 1))


def operator(name, c, stride):
    inner = c // 4
    if name == "none":
        return nn.Identity() if stride == 1 else FactorizedReduce(c, c)
    if name == "avg3":
        return nn.AvgPool2d(3, stride, 1, count_include_pad=False)
    if name == "maxpool2":
        return nn.MaxPool2d(2, stride, ceil_mode=True)
    if name == "conv1x1":
        return ReluConvBn(conv(c, c, stride=(stride, stride)))
    if name == "conv3x3":
        return ReluConvBn(conv(c, inner), conv(inner, inner, (3, 3), (stride, stride)), conv(inner, c))
    return ReluConvBn(conv(c, inner), conv(inner, inner, (1, 7), (1, stride)),
                      conv(inner, inner, (7, 1), (stride, 1)), conv(inner, c))


class Cell(nn.Module):
    def __init__(self, previous, before_previous, c, reduction, after_reduction):
        super().__init__()
        pairs, self.outputs = REDUCTION if reduction else NORMAL
        self.channels = c * len(self.outputs)
        self.s1 = ReluConvBn(conv(previous, c))
        if after_reduction:
            self.s2 = FactorizedReduce(before_previous, c)
        else:
            self.s2 = nn.Identity() if before_previous == c else ReluConvBn(conv(before_previous, c))
        self.edges = []
        for number, (state, name) in enumerate(pairs):
            module = operator(name, c, 2 if reduction and state < 2 else 1)
            self.add_module(f"op{number}", module)
            self.edges.append((state, module))

    def forward(self, previous, before_previous):
        states = [self.s1(previous), self.s2(before_previous)]
        for (left, first), (right, second) in zip(self.edges[::2], self.edges[1::2]):
            states.append(first(states[left]) + second(states[right]))
        return torch.cat([states[state] for state in self.outputs], 1)


class AmoebaNet(nn.Module):
    """Maps images [N, 3, H, W], values from -1 to 1, to logits [N, classes]."""

    def __init__(self, num_layers=18, num_filters=416, classes=10):
        super().__init__()
        c = num_filters // 4
        self.stem1 = ReluConvBn(conv(3, c, (3, 3), (2, 2)))
        self.cells = []
        previous, before_previous, after_reduction = c, c, False
        period = num_layers // 3 + 1  # a third of the normal cells, then a reduction
        names = [("stem2", True), ("stem3", True)]
        names += [(f"cell{i}", i % period == 0) for i in range(1, num_layers + 3)]
        for name, reduction in names:
            c *= 2 if reduction else 1
            cell = Cell(previous, before_previous, c, reduction, after_reduction)
            self.add_module(name, cell)
            self.cells.append(cell)
            previous, before_previous, after_reduction = cell.channels, previous, reduction
        self.classify = nn.Sequential()
        self.classify.add_module("pool", nn.AdaptiveAvgPool2d(1))
        self.classify.add_module("flatten", nn.Flatten())
        self.classify.add_module("linear", nn.Linear(previous, classes))

    def forward(self, images):
        previous = before_previous = self.stem1(images)
        for cell in self.cells:
            previous, before_previous = cell(previous, before_previous), previous
        return self.classify(previous)
