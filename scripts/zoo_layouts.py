"""Verifies models of PyTorch's collections in layouts of each kind; scripts/zoo.sh says how it is
called."""
import json
import sys

from zoo_exports import BINARIES, PROGRAM, fresh_folder, in_child, on_ranks, run

TOLERANCE = 1e-9

# Exported for which size, and verified at which other one. U-Nets halve it without a remainder.
MODELS = {
    "torchvision/resnet18": ((64, 64), (75, 53)),
    "torchvision/densenet121": ((64, 64), (75, 53)),
    "torchvision/mobilenet_v3_small": ((64, 64), (75, 53)),
    "torchvision/efficientnet_b0": ((64, 64), (75, 53)),
    "torchvision/shufflenet_v2_x0_5": ((64, 64), (75, 53)),
    "torchvision/googlenet": ((64, 64), (75, 53)),
    "torchvision/regnet_y_400mf": ((64, 64), (75, 53)),
    "torchvision/squeezenet1_1": ((64, 64), (75, 53)),
    "torchvision/deeplabv3_mobilenet_v3_large": ((64, 64), (75, 53)),
    "timm/convnext_atto": ((64, 64), (96, 64)),
    "smp/Unet/resnet18": ((64, 64), (96, 64)),
    "monai/UNet": ((32, 32), (44, 36)),
}
SIZE_IN_THE_GRAPH = ("torchvision/deeplabv3_mobilenet_v3_large",)  # unless it is left open

# Ranks and flags of each layout.
LAYOUTS = {
    "layers, parts 2": (3, "--split-size 3 --parts 2 --batch-size 4"),
    "GEMS": (3, "--gems --split-size 3 --times 2 --batch-size 2"),
    "D2 of 2": (5, "--num-spatial-parts 4 --split-size 2 --halo-D2 --fused-layers 2 --batch-size 2"),
    "recompute": (4, "--stages 1x3,1 --recompute --batch-size 2"),
    "2 replicas": (4, "--stages 1x2 --batch-size 2"),
    "batch 3": (4, "--stages 2x2 --batch-size 3"),
    "other size": (4, "--stages 2x2 --batch-size 2 --image-size {other}"),
    "device": (3, "--stages 1x2,1 --batch-size 2 --device privateuseone"),
}


def export(name, folder):
    """Writes net.pt2."""
    import torch
    import zoo_models
    model, image = zoo_models.build(name, [MODELS[name][0]])
    auto = torch.export.Dim.AUTO
    shapes = ({0: auto, 2: auto, 3: auto},) if name in SIZE_IN_THE_GRAPH else None
    program = torch.export.export(model, (image,), dynamic_shapes=shapes)
    torch.export.save(program, folder / "net.pt2")


def error_in(layout, name, folder):
    """The largest error of a layout, or why there is none."""
    ranks, flags = LAYOUTS[layout]
    flags = flags.format(other="x".join(map(str, MODELS[name][1])))
    if name in SIZE_IN_THE_GRAPH and "--image-size" not in flags:
        flags += " --image-size " + "x".join(map(str, MODELS[name][0]))
    program = BINARIES / "mpi4dl-simulated" if "--device" in flags else PROGRAM
    result, log = folder / f"{layout}.json", folder / f"{layout}.log"
    code, line = run(on_ranks(ranks, [program, "verify", "--model", folder / "net.pt2", "--json",
                                      result, *flags.split()]), log)
    if code not in (0, 1) or not result.exists():
        return line
    found = json.loads(result.read_text())
    return found["max_relative_error"] if found["replicas_agree"] else "replicas disagree"


def row_of(name):
    folder = fresh_folder(name, "layouts")
    code, line = in_child(export, (name, folder), folder / "export.log")
    if code != 0:
        return {layout: line for layout in LAYOUTS}
    found = {layout: error_in(layout, name, folder) for layout in LAYOUTS}
    (folder / "net.pt2").unlink()
    return found


def is_right(error):
    return isinstance(error, float) and error <= TOLERANCE


def main():
    import torch  # noqa: F401, once for all copies of this process
    names = sys.argv[1:] or list(MODELS)
    unknown = [name for name in names if name not in MODELS]
    if unknown:
        sys.exit(f"zoo.sh --layouts has no {unknown[0]}, only {', '.join(MODELS)}")
    print(f"{'':42}" + "".join(f"{layout:>17}" for layout in LAYOUTS))
    wrong = 0
    for name in names:
        errors = row_of(name)
        print(f"{name:42}" + "".join(f"{error:17.1e}" if isinstance(error, float) else f"{'FAILED':>17}"
                                     for error in errors.values()), flush=True)
        for layout, error in errors.items():
            if not is_right(error):
                wrong += 1
                print(f"  {layout}: {error}", flush=True)
    print(f"{len(names)} models in {len(LAYOUTS)} layouts each, {wrong} wrong")
    sys.exit(1 if wrong else 0)


main()
