"""The models of scripts/zoo.py: which there are, and how each is built. Only what is asked for is
imported, so that a collection that is not installed is left out."""
import contextlib
import fnmatch
import importlib.util

import torch

# Convolutional nets of timm, at least one of each family of it.
TIMM = """
resnet18 resnet26t resnet50d resnext50_32x4d seresnet50 seresnext26d_32x4d skresnet18 resnest14d
ecaresnet26t ecaresnet50t gcresnet33ts resnetblur50 resnetaa50 resnetrs50 res2net50_26w_4s
res2next50 resnetv2_50 resnetv2_50d_gn resnetv2_50x1_bit resnet50_gn tresnet_m densenet121
densenetblur121d dpn68 vovnet39a ese_vovnet19b_dw hrnet_w18_small dla34 dla46x_c selecsls42b
gernet_s repvgg_a2 mobileone_s0 rexnet_100 mobilenetv1_100 mobilenetv2_100 mobilenetv3_small_100
mobilenetv4_conv_small efficientnet_b0 tf_efficientnet_b0 efficientnetv2_rw_t tf_efficientnetv2_s
efficientnet_lite0 mobilenet_edgetpu_100 mixnet_s tf_mixnet_s mnasnet_small semnasnet_075 fbnetc_100
fbnetv3_b spnasnet_100 hardcorenas_a tinynet_e lcnet_050 ghostnet_100 ghostnetv2_100 repghostnet_050
regnetx_002 regnety_002 regnetz_b16 regnetv_040 xception41 inception_v3 inception_v4
inception_resnet_v2 nasnetalarge pnasnet5large cspresnet50 cspresnext50 cspdarknet53 darknet53
darknetaa53 cs3darknet_s nf_resnet50 nf_regnet_b0 dm_nfnet_f0 eca_nfnet_l0 convnext_atto
convnext_tiny convnextv2_atto convmixer_768_32 inception_next_tiny poolformer_s12 focalnet_tiny_srf
fastvit_t8 repvit_m0_9 convformer_s18 mambaout_femto rdnet_tiny starnet_s1 hgnet_tiny hgnetv2_b0
vgg11 vgg13_bn legacy_senet154 legacy_seresnet18
""".split()

# Architectures of segmentation-models-pytorch with their encoders.
SMP = """
Unet/resnet18 Unet/mobilenet_v2 Unet/efficientnet-b0 Unet/densenet121 Unet/vgg11_bn
Unet/timm-regnety_002 UnetPlusPlus/resnet18 Linknet/resnet18 FPN/resnet18 PSPNet/resnet18
PAN/resnet18 MAnet/resnet18 UPerNet/resnet18 DeepLabV3/resnet18 DeepLabV3/mobilenet_v2
DeepLabV3Plus/resnet18 DeepLabV3Plus/efficientnet-b0
""".split()

# Nets of MONAI with their options.
_MAPS = {"in_channels": 3, "out_channels": 2}
MONAI = {
    "UNet": dict(_MAPS, channels=(8, 16, 32), strides=(2, 2), num_res_units=2),
    "UNet/batch": dict(_MAPS, channels=(8, 16, 32), strides=(2, 2), norm="batch", act="relu"),
    "BasicUNet": dict(_MAPS, features=(8, 8, 16, 32, 64, 8)),
    "BasicUNetPlusPlus": dict(_MAPS, features=(8, 8, 16, 32, 64, 8)),
    "AttentionUnet": dict(_MAPS, channels=(8, 16, 32), strides=(2, 2)),
    "DynUNet": dict(_MAPS, kernel_size=[3, 3, 3], strides=[1, 2, 2], upsample_kernel_size=[2, 2]),
    "SegResNet": dict(_MAPS, init_filters=8),
    "SegResNet/deconv": dict(_MAPS, init_filters=8, upsample_mode="deconv"),
    "FlexibleUNet": dict(_MAPS, backbone="efficientnet-b0"),
    "VNet": dict(in_channels=4, out_channels=2, dropout_prob_down=0.0, dropout_prob_up=(0.0, 0.0)),
    "HighResNet": dict(_MAPS),
    "RegUNet": dict(_MAPS, num_channel_initial=8, depth=2),
    "DenseNet121": dict(in_channels=3, out_channels=5),
    "SEResNet50": dict(in_channels=3, num_classes=5),
    "EfficientNetBN": dict(model_name="efficientnet-b0", num_classes=5, pretrained=False),
    "resnet18": dict(n_input_channels=3, num_classes=5),
}

# Sizes that are tried, small and odd ones first; nets refuse some in Python.
SIZES = [(67, 75), (96, 160), (139, 171), (224, 192), (299, 299)]
VOLUMES = [(9, 43, 51), (16, 64, 64), (16, 224, 224)]


def names():
    """All models, as COLLECTION/NAME."""
    found = []
    if importlib.util.find_spec("torchvision"):
        found += ["torchvision/" + name for name in torchvision_names()]
    if importlib.util.find_spec("timm"):
        found += ["timm/" + name for name in TIMM]
    if importlib.util.find_spec("monai"):
        found += ["monai/" + name for name in MONAI]
    if importlib.util.find_spec("segmentation_models_pytorch"):
        found += ["smp/" + name for name in SMP]
    return found


def torchvision_names():
    """All but the transformers, and but what detects objects or is quantised."""
    from torchvision import models
    no_cnn = ("vit_*", "swin*", "maxvit*", "mvit*")
    return [name for module in (models, models.segmentation, models.video)
            for name in models.list_models(module=module)
            if not any(fnmatch.fnmatch(name, pattern) for pattern in no_cnn)]


def build(name, sizes=None):
    """The model in train mode, without anything random, and an image that it takes, of the first of
    these sizes."""
    collection, name = name.split("/", 1)
    torch.manual_seed(0)
    model = BUILDERS[collection](name).train()
    for module in model.modules():
        for chance in CHANCES:
            if isinstance(getattr(module, chance, None), float):
                setattr(module, chance, 0.0)
    give_values(model)
    freeze_largest(model)
    return model, image_for(model, 4 if name == "VNet" else 3, sizes)


# What modules call the chance by which they drop something.
CHANCES = ("p", "drop_prob", "drop_rate", "drop_path_rate", "drop_connect_rate",
           "_drop_connect_rate")


def from_torchvision(name):
    from torchvision import models
    options = {"init_weights": True} if name in ("googlenet", "inception_v3") else {}
    segments = name.startswith(("fcn", "deeplab", "lraspp"))
    if segments:
        options = {"weights_backbone": None, "num_classes": 5}
    model = models.get_model(name, weights=None, **options)
    if segments:
        return with_result(model, lambda result: result["out"])
    return with_result(model, lambda result: result.logits) if options else model


def from_timm(name):
    import timm
    try:
        return timm.create_model(name, pretrained=False, drop_rate=0.0, drop_path_rate=0.0)
    except TypeError:  # it has no drop path
        return timm.create_model(name, pretrained=False)


def from_monai(name):
    from monai.networks import nets
    kind, options = name.split("/")[0], MONAI[name]
    model = getattr(nets, kind)(spatial_dims=2, **options)
    return with_result(model, lambda result: result[0] if isinstance(result, list) else result)


def from_smp(name):
    import segmentation_models_pytorch as smp
    kind, encoder = name.split("/")
    return getattr(smp, kind)(encoder_name=encoder, encoder_weights=None, classes=2)


BUILDERS = {"torchvision": from_torchvision, "timm": from_timm, "monai": from_monai,
            "smp": from_smp}


def with_result(model, pick):
    """The model with one tensor as its result. A wrapper would change the names of parameters."""
    forward = model.forward
    model.forward = lambda x: pick(forward(x))
    return model


def give_values(model):
    """Many scales and biases start as 0, 1 or next to nothing, where an error would not show."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.numel() == max(parameter.shape, default=1):
                parameter += 0.2 * torch.rand(parameter.shape, generator=generator) - 0.1


def freeze_largest(model):
    """Freezes the large matrices of large models, of whose gradients each rank would have a copy in
    float64. Gradients of all others pass through them."""
    if sum(parameter.numel() for parameter in model.parameters()) < 60e6:
        return
    for parameter in model.parameters():
        if parameter.numel() > 4e6:
            parameter.requires_grad_(False)


def image_for(model, channels, sizes=None):
    """Two images of the first size that it takes, or five where that makes gradients that can be
    computed."""
    volume = any(isinstance(module, torch.nn.Conv3d) for module in model.modules())
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    for size in sizes or (VOLUMES if volume else SIZES):
        image = noise(2, channels, size)
        try:
            with torch.no_grad(), pooled_norms(model) as pooled:
                first, second = model(image), model(image)
        except (RuntimeError, ValueError, IndexError, AssertionError) as error:
            refusal = error
            continue
        if not torch.equal(first, second):
            raise ValueError("it computes something else each time")
        for name, buffer in model.named_buffers():
            buffer.copy_(buffers[name])
        return noise(5, channels, size) if pooled else image
    raise refusal


def noise(images, channels, size):
    return torch.randn(images, channels, *size, generator=torch.Generator().manual_seed(2))


@contextlib.contextmanager
def pooled_norms(model):
    """Lists the batch norms that have one value of each image. Of two images they leave +1 and -1,
    whatever the values were: the gradient is the tiny rest of large numbers that cancel, and PyTorch
    itself finds another one where it sees the images in reverse order."""
    found = []

    def look(module, inputs):
        if inputs[0].numel() == inputs[0].shape[0] * inputs[0].shape[1]:
            found.append(module)

    hooks = [module.register_forward_pre_hook(look) for module in model.modules()
             if isinstance(module, torch.nn.modules.batchnorm._BatchNorm)]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()
