"""ResNet v1 and v2 as mpi4dl trains them, as PyTorch modules: names of parameters are the same, so
load_state_dict takes an exported file as it is."""
from torch import nn

STEM_CHANNELS = 16
HEAD_WINDOW = 8


def conv(inputs, outputs, kernel, stride=1):
    return nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2)


def named(**modules):
    sequence = nn.Sequential()
    for name, module in modules.items():
        sequence.add_module(name, module)
    return sequence


def pre_activated(inputs, convolution):
    return named(bn=nn.BatchNorm2d(inputs), relu=nn.ReLU(), conv=convolution)


class Block(nn.Module):
    def __init__(self, version, stage, index, inputs):
        super().__init__()
        outputs = stage_channels(version, stage)
        stride = 2 if index == 0 and stage > 0 else 1
        first = stage == 0 and index == 0
        if version == 1:
            self.r1 = named(conv=conv(inputs, outputs, 3, stride), bn=nn.BatchNorm2d(outputs), relu=nn.ReLU())
            self.r2 = named(conv=conv(outputs, outputs, 3), bn=nn.BatchNorm2d(outputs))
            self.residual = lambda x: self.r2(self.r1(x))
        else:
            inner = outputs // 4 if stage == 0 else outputs // 2
            start = conv(inputs, inner, 3, stride)
            # The stem has already normalised and activated what the very first block reads.
            self.r1 = named(conv=start) if first else pre_activated(inputs, start)
            self.r2 = pre_activated(inner, conv(inner, inner, 3))
            self.r3 = pre_activated(inner, conv(inner, outputs, 1))
            self.residual = lambda x: self.r3(self.r2(self.r1(x)))
        projects = index == 0 and (version == 2 or stage > 0)
        self.shortcut = named(conv=conv(inputs, outputs, 1, stride)) if projects else nn.Identity()
        self.last = nn.ReLU() if version == 1 else nn.Identity()

    def forward(self, x):
        return self.last(self.shortcut(x) + self.residual(x))


def stage_channels(version, stage):
    return (16 if version == 1 else 64) << stage


def pooled(length):
    """One side of the map after two stride-2 convolutions and the head's pooling."""
    halved = (length + 1) // 2
    return (halved + 1) // 2 // HEAD_WINDOW


class ResNet(nn.Module):
    """Maps images [N, 3, H, W], values from -1 to 1, to logits [N, classes]."""

    def __init__(self, version=2, depth=110, image=(32, 32), classes=10, global_pool_head=False):
        super().__init__()
        blocks = (depth - 2) // (6 if version == 1 else 9)
        self.stem = named(conv=conv(3, STEM_CHANNELS, 3), bn=nn.BatchNorm2d(STEM_CHANNELS), relu=nn.ReLU())
        channels = STEM_CHANNELS
        for stage in range(3):
            sequence = nn.Sequential()
            for index in range(blocks):
                sequence.add_module(f"block{index}", Block(version, stage, index, channels))
                channels = stage_channels(version, stage)
            self.add_module(f"stage{stage}", sequence)
        self.head = nn.Sequential()
        if version == 2:
            self.head.add_module("bn", nn.BatchNorm2d(channels))
            self.head.add_module("relu", nn.ReLU())
        features = channels
        if global_pool_head:
            self.head.add_module("pool", nn.AdaptiveAvgPool2d(1))
        else:
            self.head.add_module("pool", nn.AvgPool2d(HEAD_WINDOW))
            features *= pooled(image[0]) * pooled(image[1])
        self.head.add_module("flatten", nn.Flatten())
        self.head.add_module("linear", nn.Linear(features, classes))

    def forward(self, images):
        return self.head(self.stage2(self.stage1(self.stage0(self.stem(images)))))
