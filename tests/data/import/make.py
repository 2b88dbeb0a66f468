"""make.py [NET...]: writes small files of PyTorch models into build/import-files, each with what
PyTorch computes from it. It runs under three versions of PyTorch, the newest one first:

    PYTORCH_2_15/bin/python tests/data/import/make.py    NET.pt2, NET.eval.pt2, NET.dynamic.pt2,
                                                         and what to expect: NET.safetensors
    PYTORCH_2_6/bin/python tests/data/import/make.py     NET.torch26.pt2
    /usr/bin/python3 tests/data/import/make.py           NET.trace.pt and NET.script.pt, by Debian's
                                                         PyTorch 1.13

Then `make.py pack` writes files.tar.xz, of which CMake takes them. Each version also writes files
that are to be refused, and refused.json, which says why. Weights and images follow from names
alone, so all versions write the same ones; every file is read again by PyTorch, and compared with
what is expected of it.
"""
import os
import pathlib
import random
import sys
import tarfile
import types
import warnings

import torch

SOURCES = pathlib.Path(__file__).absolute().parent
FILES = SOURCES.parents[2] / "build" / "import-files"
VERSION = tuple(int(number) for number in torch.__version__.split(".")[:2])
warnings.simplefilter("ignore")


def load(name):
    """A module whose file has no folder in its name: PyTorch writes names of files into its own."""
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(compile((SOURCES / (name + ".py")).read_text(), name + ".py", "exec"), module.__dict__)
    module.__file__ = name + ".py"
    return module


os.chdir(SOURCES)  # where torch.jit.script looks for them
expected, nets, refused = load("expected"), load("nets"), load("refused")


# --- Weights and images ---

def numbers(key, count, low, high):
    """Numbers between low and high that are the same in every version of Python and PyTorch."""
    source = random.Random(key)
    return torch.tensor([source.uniform(low, high) for _ in range(count)], dtype=torch.float64)


def fill(model):
    """Gives every parameter and statistic values that are of no special kind."""
    for name, tensor in model.state_dict().items():
        if not tensor.is_floating_point() or name in ("scale", "blur"):
            continue
        low, high = -0.3, 0.3
        if name.endswith("running_var") or tensor.ndim == 1 and name.endswith("weight"):
            low, high = 0.5, 1.5
        elif tensor.ndim > 1 and tensor.numel() > tensor.shape[0]:
            high = 1.7 / (tensor.numel() / tensor.shape[0]) ** 0.5
            low = -high
        values = numbers(name, tensor.numel(), low, high).reshape(tensor.shape)
        with torch.no_grad():
            tensor.copy_(values)  # which keeps the strides of channels that are last
    return model


def image_of(key, shape):
    """Two images of few distinct numbers, so that they take little space in a file."""
    count = 2
    for length in shape:
        count *= length
    values = numbers(f"image of {key}", count, -2, 2).mul(8).round().div(8)
    return values.reshape(2, *shape).float()


LABELS = torch.tensor([1, 3])


# --- .pt2 files ---

def any_size():
    auto = torch.export.Dim.AUTO
    return ({0: auto, 2: auto, 3: auto},)


def save(program, path):
    here = str(pathlib.Path(torch.__file__).parents[1]) + "/"
    for node in program.graph.nodes:  # whose lines of PyTorch are on this machine
        if "stack_trace" in node.meta:
            node.meta["stack_trace"] = node.meta["stack_trace"].replace(here, "")
    torch.export.save(program, FILES / path)
    print(f"{path}: {os.path.getsize(FILES / path)} bytes")


def compare_program(path, values):
    """Runs what the file says, as PyTorch reads it, and compares."""
    program = torch.export.load(FILES / path)
    options = {"check_guards": False} if VERSION >= (2, 9) else {}
    compare(path, program.module(**options).double().forward, values)  # at any size: no hooks


def compare(path, forward, values):
    found = {"output": forward(values["input"].double()).detach()}
    error, name = expected.largest_error(found, {"output": values["output"]})
    assert error < 1e-12, f"{path} differs by {error} in {name}"


def write_expected(net, kind, image, suffix=""):
    values = expected.step(fill(kind()), image, LABELS)
    tensors = {"input": image.half(), "labels": LABELS, **values}
    if tensors["output"].ndim > 2:
        del tensors["labels"]
    if suffix:  # takes space, and what is wrong at another size is wrong in the output
        tensors = {name: values for name, values in tensors.items() if "grad/" not in name}
    expected.write_safetensors(FILES / (net + suffix + ".safetensors"), tensors)
    return tensors


def write_trained(net, kind):
    image = image_of(net, kind.image)
    tensors = {"input": image.half(), "labels": LABELS}
    for optimizer in expected.OPTIMIZERS:
        tensors.update(expected.trained(fill(kind()), image, LABELS, optimizer))
    expected.write_safetensors(FILES / (net + ".trained.safetensors"), tensors)


def write_exports(net, kind):
    model, image = fill(kind().train()), image_of(net, kind.image)
    values = write_expected(net, kind, image)
    save(torch.export.export(model, (image,)), net + ".pt2")
    compare_program(net + ".pt2", values)
    if "dynamic" in kind.forms:
        save(torch.export.export(model, (image,), dynamic_shapes=any_size()), net + ".dynamic.pt2")
        compare_program(net + ".dynamic.pt2", values)
    if net in nets.TRAINED:
        write_trained(net, kind)
    if hasattr(kind, "other_image"):
        image = image_of(net + ", other size", kind.other_image)
        other = write_expected(net, kind, image, ".other")
        compare_program(net + (".dynamic.pt2" if "dynamic" in kind.forms else ".pt2"), other)
    if "eval" in kind.forms:
        image = image_of(net, kind.image)
        save(torch.export.export(model.eval(), (image,)), net + ".eval.pt2")


def write_old_export(net, kind):
    if "torch26" not in kind.forms:
        return
    path = net + ".torch26.pt2"
    model = fill(kind().train())
    save(torch.export.export(model, (image_of(net, kind.image),)), path)
    compare_program(path, expected.read_safetensors(FILES / (net + ".safetensors")))


# --- TorchScript files ---

def write_torchscript(net, kind):
    values = expected.read_safetensors(FILES / (net + ".safetensors"))
    for form in ("trace", "script"):
        if form not in kind.forms:
            continue
        path = f"{net}.{form}.pt"
        torch.jit.save(torchscript(form, kind, values["input"].float()), str(FILES / path))
        print(f"{path}: {os.path.getsize(FILES / path)} bytes")
        compare(path, torch.jit.load(str(FILES / path)).double(), values)


def torchscript(form, kind, image):
    model = fill(kind().train())
    if form == "script":
        return torch.jit.script(model)
    traced = torch.jit.trace(model, image, check_trace=False)
    traced.load_state_dict(fill(kind()).state_dict(), strict=False)  # a trace changes statistics
    return traced


# --- All of them ---

def without_owner(entry):
    """An entry of an archive that is the same, whoever makes it and when."""
    entry.mtime = entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def pack():
    with tarfile.open(SOURCES / "files.tar.xz", "w:xz", preset=9) as archive:
        for path in sorted(FILES.iterdir()):
            archive.add(path, path.name, filter=without_owner)


def main():
    if sys.argv[1:] == ["pack"]:
        return pack()
    FILES.mkdir(parents=True, exist_ok=True)
    write = write_torchscript if VERSION < (2, 0) else write_exports
    if (2, 0) <= VERSION < (2, 9):
        write = write_old_export
    for net in sys.argv[1:] or nets.NETS:
        write(net, nets.NETS[net])
    refused.write(FILES, VERSION, fill, image_of, save)


main()
