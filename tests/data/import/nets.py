"""Small convolutional nets, each for one family of operators and its traps; make.py exports them.

They run under PyTorch 1.13 and later. A net says by class attributes for which image it is meant
(`image`), in which other forms than a train-mode .pt2 file it is written (`forms`), and at which
other size its files hold too (`other_image`).
"""
import torch
import torch.nn.functional as F
from torch import nn


def conv(inputs, outputs, kernel=3, stride=1, **options):
    """A convolution that keeps the size, without a bias."""
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False, **options)


def conv_bn_relu(inputs, outputs, kernel=3, stride=1):
    return nn.Sequential(conv(inputs, outputs, kernel, stride), nn.BatchNorm2d(outputs),
                         nn.ReLU(inplace=True))


def head(channels, classes=5):
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


# --- Classifiers ---

class Residual(nn.Module):
    """Residual blocks with ReLUs in place, one of them with a strided shortcut."""
    image = (3, 29, 23)
    other_image = (3, 31, 34)
    forms = ("eval", "torch26", "script")

    class Block(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.conv1 = conv(inputs, outputs, stride=stride)
            self.bn1 = nn.BatchNorm2d(outputs)
            self.relu = nn.ReLU(inplace=True)
            self.conv2 = conv(outputs, outputs)
            self.bn2 = nn.BatchNorm2d(outputs)
            self.downsample = nn.Sequential()
            if stride != 1:
                self.downsample = nn.Sequential(conv(inputs, outputs, 1, stride),
                                                nn.BatchNorm2d(outputs))

        def forward(self, x):
            y = self.relu(self.bn1(self.conv1(x)))
            y = self.bn2(self.conv2(y))
            y += self.downsample(x)
            return self.relu(y)

    def __init__(self):
        super().__init__()
        self.stem = conv_bn_relu(3, 4)
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = Residual.Block(4, 4, 1)
        self.layer2 = Residual.Block(4, 4, 2)
        self.head = head(4)

    def forward(self, x):
        return self.head(self.layer2(self.layer1(self.pool(self.stem(x)))))


class PreActivation(nn.Module):
    """What is read after relu_ is the changed value; and a chain of changes in place."""
    image = (3, 21, 17)
    forms = ("script",)

    def __init__(self):
        super().__init__()
        self.stem = conv(3, 4)
        self.bn = nn.BatchNorm2d(4)
        self.conv1 = conv(4, 4)
        self.conv2 = conv(4, 4, stride=2)
        self.head = head(4)

    def forward(self, x):
        x = self.stem(x)
        y = F.relu_(x)
        x = x + self.conv1(y)  # reads the ReLU twice
        z = self.bn(x)
        w = z.mul_(0.5).add_(x)
        return self.head(self.conv2(F.silu(z, inplace=True)) + F.max_pool2d(w, 3, 2, 1))


class SqueezeExcite(nn.Module):
    """Maps scaled by what was pooled from them: by 1x1 convolutions, and by linear layers with a
    view; hardswish, hardsigmoid and SiLU."""
    image = (3, 27, 21)
    other_image = (3, 24, 29)
    forms = ("eval", "torch26", "trace")

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(conv(3, 6, stride=2), nn.BatchNorm2d(6), nn.Hardswish(True))
        self.reduce = nn.Conv2d(6, 3, 1)
        self.expand = nn.Conv2d(3, 6, 1)
        self.depthwise = conv(6, 6, groups=6)
        self.bn = nn.BatchNorm2d(6)
        self.fc1 = nn.Linear(6, 3)
        self.fc2 = nn.Linear(3, 6)
        self.head = head(6)

    def forward(self, x):
        x = self.stem(x)
        gate = F.relu(self.reduce(F.adaptive_avg_pool2d(x, 1)))
        x = F.hardsigmoid(self.expand(gate)) * x
        x = F.silu(self.bn(self.depthwise(x)))
        gate = self.fc2(F.silu(self.fc1(x.mean((2, 3)))))
        x = x * torch.sigmoid(gate).view(x.shape[0], x.shape[1], 1, 1)
        return self.head(x)


class Drop(nn.Module):
    """Dropout of elements and of channels and three spellings of drop path, which all keep
    everything, so that values can be compared."""
    image = (3, 19, 21)
    forms = ("eval", "trace")

    def __init__(self):
        super().__init__()
        self.stem = conv_bn_relu(3, 4)
        self.conv1 = conv(4, 4)
        self.conv2 = conv(4, 4)
        self.conv3 = conv(4, 4, stride=2)
        self.elements = nn.Dropout(0.0)
        self.channels = nn.Dropout2d(0.0)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.0),
                                  nn.Linear(4, 5))

    def drop_as_torchvision(self, x):
        if not self.training:
            return x
        noise = torch.empty([x.shape[0], 1, 1, 1], dtype=x.dtype, device=x.device)
        return x * noise.bernoulli_(1.0).div_(1.0)

    def drop_as_timm(self, x):
        if not self.training:
            return x
        noise = x.new_empty((x.shape[0],) + (1,) * (x.ndim - 1)).bernoulli_(1.0)
        noise.div_(1.0)
        return x * noise

    def drop_as_monai(self, x):
        if not self.training:
            return x
        noise = 1.0 + torch.rand([x.shape[0], 1, 1, 1], dtype=x.dtype, device=x.device)
        return x / 1.0 * torch.floor(noise)

    def forward(self, x):
        x = self.stem(x)
        x = x + self.drop_as_torchvision(self.conv1(x))
        x = x + self.drop_as_timm(self.conv2(self.elements(x)))
        x = self.drop_as_monai(self.conv3(self.channels(x)))
        return self.head(x)


class Shuffle(nn.Module):
    """Channels that are split, shuffled (view, transpose, view) and concatenated; slices."""
    image = (3, 25, 22)
    other_image = (3, 19, 30)
    forms = ("dynamic", "torch26", "script")

    def __init__(self):
        super().__init__()
        self.stem = conv_bn_relu(3, 8, stride=2)
        self.branch = nn.Sequential(conv(4, 4, groups=4), nn.BatchNorm2d(4), conv_bn_relu(4, 4, 1))
        self.mix = conv(4, 4, 1)
        self.head = head(8)

    def shuffle(self, x):
        batch, channels, height, width = x.shape
        x = x.view(batch, 2, channels // 2, height, width)
        return torch.transpose(x, 1, 2).contiguous().view(batch, channels, height, width)

    def forward(self, x):
        x = self.stem(x)
        x1, x2 = x.chunk(2, dim=1)
        x = self.shuffle(torch.cat([x1, self.branch(x2)], dim=1))
        first, second, third = torch.split(x, [3, 1, 4], dim=1)
        x = torch.cat([self.mix(third), first, second], 1)
        return self.head(x[:, :8] + torch.cat((x[:, 5:], x[:, 0:5]), 1))


class Dense(nn.Module):
    """Concatenations of one, two and more values, in lists that grow after they were read."""
    image = (3, 26, 19)
    forms = ("script",)

    class Layer(nn.Module):
        def __init__(self, inputs):
            super().__init__()
            self.norm = nn.BatchNorm2d(inputs)
            self.conv = conv(inputs, 3)

        def forward(self, features):
            return self.conv(F.relu(self.norm(features)))

    def __init__(self):
        super().__init__()
        self.stem = conv(3, 4)
        self.layer1 = Dense.Layer(4)
        self.layer2 = Dense.Layer(7)
        self.layer3 = Dense.Layer(10)
        self.norm = nn.BatchNorm2d(13)
        self.pool = nn.AvgPool2d(2, 2)
        self.head = head(13)

    def forward(self, x):
        features = [self.stem(x)]
        features.append(self.layer1(torch.cat(features, 1)))
        features.append(self.layer2(torch.cat(features, 1)))
        features.append(self.layer3(torch.cat(features, 1)))
        return self.head(F.relu(self.pool(self.norm(torch.cat(features, 1)))))


class ConvNext(nn.Module):
    """LayerNorm and linear layers on maps whose channels are last; learned scale; GELU."""
    image = (3, 25, 27)
    forms = ("torch26", "trace")

    class Norm(nn.LayerNorm):
        def forward(self, x):
            x = F.layer_norm(x.permute(0, 2, 3, 1), self.normalized_shape, self.weight, self.bias,
                             self.eps)
            return x.permute(0, 3, 1, 2)

    class Block(nn.Module):
        def __init__(self, channels):
            super().__init__()
            self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
            self.norm = nn.LayerNorm(channels, eps=1e-6)
            self.wide = nn.Linear(channels, 2 * channels)
            self.narrow = nn.Linear(2 * channels, channels)
            self.layer_scale = nn.Parameter(torch.ones(channels, 1, 1))

        def forward(self, x):
            y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
            y = self.narrow(F.gelu(self.wide(y))).permute(0, 3, 1, 2)
            return x + self.layer_scale * y

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 6, 2, 2), ConvNext.Norm(6))
        self.block = ConvNext.Block(6)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), ConvNext.Norm(6), nn.Flatten(1),
                                  nn.Linear(6, 5))

    def forward(self, x):
        return self.head(self.block(self.stem(x)))


class Norms(nn.Module):
    """Group, instance, layer and batch norms, with and without weights, other eps and momentum."""
    image = (3, 23, 18)
    forms = ("trace",)

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 3, padding=1)
        self.group = nn.GroupNorm(2, 6)
        self.group_plain = nn.GroupNorm(3, 6, eps=1e-3, affine=False)
        self.conv2 = nn.Conv2d(6, 4, 3, 2, 1)
        self.instance = nn.InstanceNorm2d(4, affine=True)
        self.instance_plain = nn.InstanceNorm2d(4, eps=1e-2)
        self.conv3 = nn.Conv2d(4, 4, 3)
        self.batch_plain = nn.BatchNorm2d(4, affine=False, momentum=0.03)
        self.batch = nn.BatchNorm2d(4, eps=1e-3)
        self.layer_plain = nn.LayerNorm(4, elementwise_affine=False)
        self.head = head(4)

    def forward(self, x):
        x = torch.relu(self.group_plain(torch.relu(self.group(self.conv1(x)))))
        x = torch.relu(self.instance(self.conv2(x)))
        x = self.conv3(x + self.instance_plain(x))
        x = torch.relu(self.batch_plain(x)) + self.batch(x)
        return self.head(self.layer_plain(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2).abs())


class Activations(nn.Module):
    """All activations, each on the same values, those with options with options."""
    image = (3, 17, 19)
    forms = ()

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.prelu_one = nn.PReLU()
        self.prelu = nn.PReLU(4)
        self.activations = nn.ModuleList([
            nn.LeakyReLU(0.2), nn.LeakyReLU(inplace=False), nn.ELU(0.7), nn.Softplus(), nn.ReLU6(),
            nn.Softplus(2.0, 1.0), nn.Tanh(), nn.Mish(), nn.GELU(), nn.GELU("tanh"), nn.SiLU(),
            nn.Hardtanh(-0.5, 0.8), nn.Sigmoid(), nn.Hardswish(), nn.Hardsigmoid()])
        self.mix = nn.Conv2d(4 * 17, 4, 1, 2)
        self.head = head(4)

    def forward(self, x):
        x = self.conv(x)
        values = [self.prelu_one(x), self.prelu(x)]
        for activation in self.activations:
            values.append(activation(x))
        return self.head(self.mix(torch.cat(values, 1)))


class Arithmetic(nn.Module):
    """Numbers and learned scales with maps, maps with maps, and gates of one channel."""
    image = (3, 22, 17)
    forms = ("torch26",)

    def __init__(self):
        super().__init__()
        self.stem = conv_bn_relu(3, 4)
        self.conv1 = conv(4, 4)
        self.conv2 = conv(4, 4)
        self.gate = nn.Conv2d(4, 1, 1)
        self.gamma = nn.Parameter(torch.ones(1))
        self.scale = nn.Parameter(torch.ones(1, 4, 1, 1))
        self.shift = nn.Parameter(torch.zeros(4, 1, 1))
        self.head = head(4)

    def forward(self, x):
        x = self.stem(x)
        y = self.conv1(x) * 0.17 + x
        z = torch.sigmoid(self.gate(y)) * y
        y = torch.add(self.gamma * y, self.conv2(z), alpha=2) / 1.5
        y = self.scale * y + self.shift
        y = torch.maximum(y, z) - torch.tanh(x * y)
        return self.head((1 - y) * z / (2 + torch.sigmoid(y)) - (-z))


class Vgg(nn.Module):
    """Pools to more than one pixel, some of them larger than the map, and layers on all of them."""
    image = (3, 29, 23)
    other_image = (3, 31, 27)
    forms = ("dynamic",)

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(True), nn.MaxPool2d(2, 2),
            nn.Conv2d(4, 4, 3, padding=1), nn.ReLU(True), nn.MaxPool2d(2, 2))
        self.pool = nn.AdaptiveAvgPool2d((3, 6))
        self.classifier = nn.Sequential(nn.Linear(4 * 18, 8), nn.ReLU(True), nn.Dropout(0.0),
                                        nn.Linear(8, 5))

    def forward(self, x):
        x = self.pool(self.features(x))
        return self.classifier(torch.flatten(x, 1))


class Stem(nn.Module):
    """Windows of all kinds: 7x7 with stride, grouped, depthwise, dilated, 1x5 and 5x1, even; pools
    that round up, and averages with and without the padding."""
    image = (2, 31, 35)
    forms = ()

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(2, 4, 7, 2, 3, bias=False)
        self.bn = nn.BatchNorm2d(4)
        self.pool = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.grouped = conv(4, 8, groups=2)
        self.depthwise = nn.Conv2d(8, 8, 5, padding=2, groups=8)
        self.dilated = nn.Conv2d(8, 4, 3, padding=3, dilation=3, bias=False)
        self.wide = nn.Conv2d(4, 4, (1, 5), padding=(0, 2))
        self.tall = nn.Conv2d(4, 4, (5, 1), padding=(2, 0))
        self.even = nn.Conv2d(4, 4, 4, padding=1, stride=2)
        self.average = nn.AvgPool2d(3, 2, 1, ceil_mode=True)
        self.average_inside = nn.AvgPool2d(3, 1, 1, count_include_pad=False)
        self.dilated_pool = nn.MaxPool2d(2, 1, dilation=2)
        self.head = head(12)

    def forward(self, x):
        x = self.pool(F.relu(self.bn(self.stem(x))))
        x = self.dilated(F.relu(self.depthwise(F.relu(self.grouped(x)))))
        x = self.tall(self.wide(x))
        even = self.even(x)
        average = self.average_inside(self.average(x))
        values = [F.pad(even, (0, 1, 0, 1)), average, F.pad(self.dilated_pool(average), [1] * 4)]
        return self.head(torch.cat(values, 1))


class Tied(nn.Module):
    """One module under two names and called twice; unused and frozen parameters; a persistent and
    another buffer; constants; a weight whose channels are last."""
    image = (3, 21, 25)
    forms = ("torch26", "trace")

    def __init__(self):
        super().__init__()
        self.mean = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)
        self.std = torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1)
        self.register_buffer("scale", torch.tensor([0.5, 2.0, 1.5]).view(3, 1, 1), persistent=False)
        self.register_buffer("steps", torch.tensor(7))
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.twice = conv(4, 4)
        self.again = self.twice
        self.bn = nn.BatchNorm2d(4)
        self.unused = nn.Linear(4, 3)
        self.frozen = conv(4, 4)
        self.frozen.weight.requires_grad_(False)
        self.frozen_bn = nn.BatchNorm2d(4).requires_grad_(False)
        self.last = conv(4, 6, stride=2)
        self.last.weight.data = self.last.weight.data.to(memory_format=torch.channels_last)
        self.head = head(6)

    def forward(self, x):
        x = self.stem((x - self.mean) / self.std * self.scale)
        x = F.relu(self.bn(self.twice(x)))
        x = F.relu(self.again(x))
        x = F.relu(self.frozen_bn(self.frozen(x)))
        return self.head(self.last(x))


class WeightNorm(nn.Module):
    """Weights that are computed from others: a direction and a length for each output channel."""
    image = (3, 19, 17)
    forms = ("trace",)

    def __init__(self):
        super().__init__()
        self.conv = nn.utils.weight_norm(nn.Conv2d(3, 4, 3, padding=1))
        self.linear = nn.utils.weight_norm(nn.Linear(4, 5), dim=0)

    def forward(self, x):
        return self.linear(F.relu(self.conv(x)).mean((2, 3)))


class Parametrised(nn.Module):
    """The same as a parametrisation, whose parameters have other names."""
    image = (3, 17, 19)
    forms = ()

    def __init__(self):
        super().__init__()
        weight_norm = nn.utils.parametrizations.weight_norm
        self.conv = weight_norm(nn.Conv2d(3, 4, 3, padding=1, bias=False))
        self.head = head(4)

    def forward(self, x):
        return self.head(F.relu(self.conv(x)))


class WeightStandardised(nn.Module):
    """Weights with mean 0 and variance 1, by a batch norm of the weight (as in nfnets) and by
    arithmetic (as in BiT)."""
    image = (3, 21, 19)
    forms = ()

    class ByBatchNorm(nn.Conv2d):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            self.gain = nn.Parameter(torch.ones(self.out_channels, 1, 1, 1))

        def forward(self, x):
            weight = F.batch_norm(
                self.weight.reshape(1, self.out_channels, -1), None, None,
                weight=(self.gain * 0.25).view(-1), training=True, momentum=0.0,
                eps=1e-6).reshape_as(self.weight)
            return F.conv2d(x, weight, self.bias, self.stride, self.padding)

    class ByArithmetic(nn.Conv2d):
        def forward(self, x):
            w = self.weight
            mean = w.mean((1, 2, 3), keepdim=True)
            variance = w.var((1, 2, 3), unbiased=False, keepdim=True)
            return F.conv2d(x, (w - mean) / torch.sqrt(variance + 1e-6), self.bias, self.stride,
                            self.padding)

    def __init__(self):
        super().__init__()
        self.conv1 = WeightStandardised.ByBatchNorm(3, 4, 3, padding=1)
        self.norm = nn.GroupNorm(2, 4)
        self.conv2 = WeightStandardised.ByArithmetic(4, 6, 3, 2, 1)
        self.head = head(6)

    def forward(self, x):
        return self.head(F.relu(self.conv2(F.relu(self.norm(self.conv1(x))))))


class SelectiveKernel(nn.Module):
    """Two branches weighted by a softmax over them (SK, split attention), and a softmax over the
    channels of a map."""
    image = (3, 23, 19)
    forms = ("trace",)

    def __init__(self):
        super().__init__()
        self.small = conv_bn_relu(3, 4)
        self.large = conv_bn_relu(3, 4, 3)
        self.reduce = nn.Linear(4, 3)
        self.expand = nn.Linear(3, 8)
        self.mask = conv(4, 4, stride=2)
        self.conv = conv(4, 4, stride=2)
        self.head = head(4)

    def forward(self, x):
        both = torch.stack([self.small(x), self.large(x)], dim=1)
        pooled = both.sum(1).mean((2, 3))
        weights = self.expand(F.relu(self.reduce(pooled)))
        weights = F.softmax(weights.view(-1, 2, 4), dim=1).view(-1, 2, 4, 1, 1)
        x = (both * weights).sum(dim=1)
        return self.head(torch.softmax(self.mask(x), dim=1) * self.conv(x))


class Branches(nn.Module):
    """Two resolutions side by side that exchange, so that several values live across every cut."""
    image = (2, 21, 18)
    forms = ()

    class Exchange(nn.Module):
        def __init__(self):
            super().__init__()
            self.high = conv_bn_relu(4, 4)
            self.low = conv_bn_relu(4, 4)
            self.down = nn.Sequential(conv(4, 4, stride=2), nn.BatchNorm2d(4))
            self.up = nn.Sequential(conv(4, 4, 1), nn.BatchNorm2d(4))

        def forward(self, values):
            high, low = self.high(values[0]), self.low(values[1])
            up = F.interpolate(self.up(low), size=high.shape[2:], mode="nearest")
            return [F.relu(high + up), F.relu(low + self.down(high))]

    def __init__(self):
        super().__init__()
        self.stem = conv_bn_relu(2, 4)
        self.halve = conv_bn_relu(4, 4, stride=2)
        self.stage1 = Branches.Exchange()
        self.stage2 = Branches.Exchange()
        self.head = head(8)

    def forward(self, x):
        x = self.stem(x)
        high, low = self.stage2(self.stage1([x, self.halve(x)]))
        return self.head(torch.cat([F.avg_pool2d(high, 2), low[:, :, :10]], 1))


class Volume(nn.Module):
    """Three spatial axes."""
    image = (1, 9, 14, 13)
    forms = ()

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv3d(1, 3, 3, 1, 1, bias=False)
        self.bn = nn.BatchNorm3d(3)
        self.conv2 = nn.Conv3d(3, 4, (1, 3, 3), (1, 2, 2), (0, 1, 1))
        self.pool = nn.MaxPool3d((1, 3, 3), (1, 2, 2), (0, 1, 1))
        self.head = nn.Sequential(nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(4, 5))

    def forward(self, x):
        return self.head(self.pool(F.relu(self.conv2(F.relu(self.bn(self.conv1(x)))))))


# --- Outputs with spatial axes ---

class Pyramid(nn.Module):
    """Dilated branches, and pools to 1, 2 and 3 pixels with layers on them that are brought back to
    the size of another map (ASPP, PSP)."""
    image = (2, 21, 18)
    other_image = (2, 25, 23)
    forms = ("dynamic",)

    def __init__(self):
        super().__init__()
        self.stem = conv_bn_relu(2, 4, stride=2)
        self.near = conv_bn_relu(4, 4, 1)
        self.far = nn.Sequential(nn.Conv2d(4, 4, 3, padding=4, dilation=4, bias=False),
                                 nn.BatchNorm2d(4), nn.ReLU())
        self.pooled = nn.ModuleList(
            nn.Sequential(nn.AdaptiveAvgPool2d(size), conv_bn_relu(4, 3, 1)) for size in (1, 2, 3))
        self.project = nn.Sequential(conv_bn_relu(17, 4, 1), nn.Dropout(0.0), nn.Conv2d(4, 1, 1))

    def forward(self, x):
        image = x.shape[-2:]
        x = self.stem(x)
        values = [self.near(x), self.far(x)]
        for index, pooled in enumerate(self.pooled):
            values.append(F.interpolate(pooled(x), size=x.shape[-2:], mode="bilinear",
                                        align_corners=index == 2))
        x = self.project(torch.cat(values, dim=1))
        return F.interpolate(x, size=image, mode="bilinear", align_corners=False)


class UNet(nn.Module):
    """Transposed convolutions, and skips that are padded, or cropped, by a difference of sizes."""
    image = (1, 23, 18)
    other_image = (1, 25, 22)
    forms = ("dynamic", "torch26", "trace", "script")

    def __init__(self):
        super().__init__()
        self.level0 = conv_bn_relu(1, 3)
        self.level1 = conv_bn_relu(3, 4)
        self.level2 = conv_bn_relu(4, 4)
        self.up1 = nn.ConvTranspose2d(4, 3, 2, 2)
        self.decode1 = conv_bn_relu(7, 3)
        self.up0 = nn.ConvTranspose2d(3, 3, 4, 2, 1, bias=False)
        self.decode0 = conv_bn_relu(6, 3)
        self.out = nn.Conv2d(3, 1, 1)

    def forward(self, x):
        x0 = self.level0(x)
        x1 = self.level1(F.max_pool2d(x0, 2))
        x = self.up1(self.level2(F.max_pool2d(x1, 2)))
        dy, dx = x1.size(2) - x.size(2), x1.size(3) - x.size(3)
        x = F.pad(x, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        x = self.up0(self.decode1(torch.cat([x1, x], dim=1)))
        dy, dx = x0.size(2) - x.size(2), x0.size(3) - x.size(3)
        x0 = x0[:, :, dy // 2:dy // 2 + x.size(2), dx // 2:dx // 2 + x.size(3)]
        return self.out(self.decode0(torch.cat([x, x0], dim=1)))


class Upsampling(nn.Module):
    """Maps that grow: by a factor and to a size, nearest, bilinear in both conventions and bicubic;
    transposed convolutions with output padding and groups."""
    image = (2, 9, 8)
    forms = ()

    def __init__(self):
        super().__init__()
        self.stem = conv_bn_relu(2, 4)
        self.conv = conv(4, 4)
        self.grouped = nn.ConvTranspose2d(4, 4, 3, 2, 1, output_padding=1, groups=2)
        self.depthwise = nn.ConvTranspose2d(4, 4, 5, 3, 1, groups=4, bias=False)
        self.out = conv(20, 1, 1)

    def forward(self, x):
        x = self.stem(x)
        size = [2 * x.shape[2], 2 * x.shape[3]]
        twice = F.interpolate(self.conv(x), scale_factor=2, mode="nearest")
        third = F.interpolate(F.interpolate(x, scale_factor=3.0, mode="bilinear"), size=size)
        corners = F.interpolate(x, size=size, mode="bilinear", align_corners=True)
        cubic = F.interpolate(x, scale_factor=2, mode="bicubic", align_corners=False)
        deep = F.interpolate(self.depthwise(x), size=size, mode="bilinear")
        x = torch.cat([twice + self.grouped(x), third, corners, cubic, deep], 1)
        return self.out(x)


class Padding(nn.Module):
    """Padding that is not zeros: reflected, repeated, circular, a number, minus infinity; "same" of
    TensorFlow, computed from the size; crops by negative padding; a fixed blur."""
    image = (3, 23, 27)
    forms = ("trace",)

    def __init__(self):
        super().__init__()
        self.reflect = nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect")
        self.replicate = nn.Conv2d(4, 4, (5, 3), padding=(2, 1), padding_mode="replicate")
        self.circular = nn.Conv2d(4, 4, 3, padding=1, padding_mode="circular")
        self.same = nn.Conv2d(4, 4, 4, padding="same")
        self.strided = nn.Conv2d(4, 4, 3, 2)
        self.number = nn.ConstantPad2d((2, 1, 0, 1), 0.5)
        blur = torch.tensor([1.0, 2.0, 1.0])
        blur = (blur[:, None] * blur[None, :] / 16).expand(4, 1, 3, 3).contiguous()
        self.register_buffer("blur", blur)
        self.out = nn.Conv2d(4, 1, 1)

    def pad_same(self, x, value: float):
        height, width = x.shape[2], x.shape[3]
        over_y = max(((height + 1) // 2 - 1) * 2 + 3 - height, 0)
        over_x = max(((width + 1) // 2 - 1) * 2 + 3 - width, 0)
        amounts = [over_x // 2, over_x - over_x // 2, over_y // 2, over_y - over_y // 2]
        return F.pad(x, amounts, value=value)

    def forward(self, x):
        x = self.circular(torch.sigmoid(self.replicate(torch.sigmoid(self.reflect(x)))))
        x = F.relu(self.same(self.number(x)))
        x = F.conv2d(F.pad(x, (1, 1, 1, 1), mode="reflect"), self.blur, groups=4)
        y = F.max_pool2d(self.pad_same(x, -float("inf")), 3, 2)
        x = self.strided(self.pad_same(x, 0.0)) + y
        return self.out(F.pad(x, (-1, -2, 0, -1)))


class Pixels(nn.Module):
    """Pixels that become channels, and channels that become pixels."""
    image = (2, 12, 10)
    forms = ()

    def __init__(self):
        super().__init__()
        self.conv1 = conv_bn_relu(8, 4)
        self.conv2 = conv(4, 9)
        self.out = nn.Conv2d(1, 1, 3, padding=1)

    def forward(self, x):
        x = self.conv1(F.pixel_unshuffle(x, 2))
        return self.out(F.pixel_shuffle(self.conv2(x), 3))


class Widened(nn.Module):
    """Channels of zeros beside a map, in a list that has the axis of images too; means over
    stacked branches."""
    image = (3, 13, 11)
    forms = ()

    def __init__(self):
        super().__init__()
        self.stem = conv_bn_relu(3, 4)
        self.conv1 = conv(7, 4)
        self.conv2 = conv(7, 4, 1)
        self.out = nn.Conv2d(4, 2, 3, padding=1)

    def forward(self, x):
        x = F.pad(self.stem(x), (0, 0, 0, 0, 1, 2, 0, 0))
        x, y = self.conv1(x), self.conv2(x)
        mean = torch.stack([x, y, x * y], dim=1).mean(1, keepdim=True).squeeze(1)
        return self.out(torch.mean(torch.stack([mean, F.silu(x)], dim=0), dim=0))


NETS = {"residual": Residual, "pre_activation": PreActivation, "squeeze_excite": SqueezeExcite,
        "drop": Drop, "shuffle": Shuffle, "dense": Dense, "convnext": ConvNext, "norms": Norms,
        "activations": Activations, "arithmetic": Arithmetic, "vgg": Vgg, "stem": Stem,
        "tied": Tied, "weight_norm": WeightNorm, "parametrised": Parametrised,
        "weight_standardised": WeightStandardised,
        "selective_kernel": SelectiveKernel, "branches": Branches, "volume": Volume,
        "pyramid": Pyramid, "unet": UNet, "upsampling": Upsampling, "padding": Padding,
        "pixels": Pixels, "widened": Widened}

# Those that are also trained by PyTorch for some steps.
TRAINED = ("residual", "squeeze_excite", "tied", "unet")
