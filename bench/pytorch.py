#!/usr/bin/env python3
"""Trains ResNet-110 v2 and AmoebaNet-D in PyTorch alone, alternating with `mpi4dl bench train`, and prints
ratios. Any PyTorch from pip will do, and nothing of it is needed to build mpi4dl:

    python3 -m venv venv && venv/bin/pip install torch
    venv/bin/python bench/pytorch.py

Nets of PyTorch's collections, such as torchvision/resnet50, are exported and imported first; that takes PyTorch
2.9 or newer. Nothing in them is random: dropout and drop path are 0 on both sides.

Before the clock starts, both sides take the same steps from the same weights in float64, and must agree."""
import argparse
import json
import multiprocessing
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from statistics import median

try:
    import torch
except ImportError:
    print(f"{sys.argv[0]}: this Python has no PyTorch; try one that has: pip install torch", file=sys.stderr)
    sys.exit(2)

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT / "examples" / "python"))
sys.dont_write_bytecode = True  # leaves nothing beside the sources
from amoebanet import AmoebaNet  # noqa: E402
from resnet import ResNet  # noqa: E402
from weights import read_weights  # noqa: E402

CLASSES = 10
LEARNING_RATE, MOMENTUM = 0.001, 0.9  # the defaults of mpi4dl
BUILT_IN = ["resnet", "amoebanet"]
BASELINES = ["PyTorch, contiguous", "PyTorch, channels-last"]
COMPILED = "PyTorch, channels-last, compiled"
AGREE_WITHIN = 1e-9  # of the updates, in float64


class Failure(Exception):
    """Says in one sentence why there is no result."""


# Models, and how to learn: the same on both sides.


def layouts(model):
    """Ranks and flags of each layout of mpi4dl that is timed."""
    if model in BUILT_IN:
        return {"mpi4dl, 5 ranks": (5, ["--split-size", "2", "--num-spatial-parts", "4"]), "mpi4dl, one rank": (1, [])}
    return {"mpi4dl, 4 tiles": (4, ["--split-size", "1", "--num-spatial-parts", "4"]), "mpi4dl, one rank": (1, [])}


def make_model(model, flags):
    if model == "amoebanet":
        return AmoebaNet(flags.num_layers, flags.num_filters, CLASSES)
    if model == "resnet":
        return ResNet(2, flags.depth, (flags.image_size, flags.image_size), CLASSES)
    sys.path.insert(0, str(PROJECT / "scripts"))
    import zoo_models
    return zoo_models.build(model)[0]


def export(network, flags, folder):
    """Writes the file that mpi4dl imports."""
    images = torch.zeros(()).expand(2, 3, flags.image_size, flags.image_size)
    torch.export.save(torch.export.export(network.train(), (images,)), folder / "net.pt2")


def model_flags(model, flags, folder):
    """What tells mpi4dl to make the same model."""
    words = ["--image-size", flags.image_size, "--batch-size", flags.batch_size]
    if model == "amoebanet":
        words += ["--model", model, "--num-classes", CLASSES, "--num-layers", flags.num_layers, "--num-filters",
                  flags.num_filters]
    elif model == "resnet":
        words += ["--model", model, "--num-classes", CLASSES, "--resnet-version", 2, "--depth", flags.depth]
    else:
        words += ["--model", folder / "net.pt2"]
    return words + ["--optimizer", "sgd", "--lr", LEARNING_RATE, "--momentum", MOMENTUM]


def loss_of(output, labels):
    """The mean cross-entropy; of a map, which has no labels, half the mean of its squares, as in mpi4dl."""
    return torch.nn.functional.cross_entropy(output, labels) if output.ndim == 2 else output.square().mean() / 2


class Training:
    def __init__(self, network, images, labels, compiled=False):
        network.train()
        self.optimizer = torch.optim.SGD(network.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM)
        self.network = torch.compile(network) if compiled else network
        self.images, self.labels = images, labels

    def step(self):
        """One training step; its seconds."""
        start = time.perf_counter()
        self.optimizer.zero_grad()
        loss_of(self.network(self.images), self.labels).backward()
        self.optimizer.step()
        return time.perf_counter() - start


# PyTorch's side of the benchmark: a process for each baseline, which sleeps until it is asked for a round.


def serve(connection, baseline, model, flags):
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the other process, and that one ends this
    torch.set_num_threads(cores())
    torch.manual_seed(1)
    network = make_model(model, flags)
    images = torch.rand(flags.batch_size, 3, flags.image_size, flags.image_size) * 2 - 1
    if baseline != "PyTorch, contiguous":
        network = network.to(memory_format=torch.channels_last)
        images = images.contiguous(memory_format=torch.channels_last)
    training = Training(network, images, torch.randint(CLASSES, (flags.batch_size,)), baseline == COMPILED)
    training.step()
    while True:
        connection.send(None)  # ready
        try:
            steps = connection.recv()
        except EOFError:  # nobody will ask again
            return
        training.step()
        connection.send([training.step() for _ in range(steps)])


class Baseline:
    def __init__(self, name, model, flags):
        context = multiprocessing.get_context("spawn")
        self.name = name
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, name, model, flags), daemon=True)
        self.process.start()
        theirs.close()
        self.receive()

    def receive(self):
        try:
            return self.connection.recv()
        except EOFError:
            raise Failure(f"'{self.name}' has ended instead of answering; what it said last is above") from None

    def round(self, steps):
        """Seconds of so many steps, after one that does not count."""
        self.connection.send(steps)
        seconds = self.receive()
        self.receive()
        return seconds

    def end(self):
        self.connection.close()
        self.process.join()


# mpi4dl's side.


def cores():
    return len(os.sched_getaffinity(0))


def environment():
    """Containers run as root, and ranks may outnumber cores: Open MPI wants to be told."""
    known = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    return {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl": "^tcp",
            "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", **known}


def run_mpi4dl(flags, ranks, *words):
    launcher = ["mpirun", "--bind-to", "none", "-np", str(ranks)] if ranks > 1 else []
    command = launcher + [flags.mpi4dl, *map(str, words)]
    done = subprocess.run(command, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True)
    if done.returncode != 0:
        sys.stderr.write(done.stdout)
        raise Failure(f"'{' '.join(command)}' has ended with exit code {done.returncode}")


def mpi4dl_round(flags, model, layout, folder):
    """Seconds of a round's steps, after two that do not count."""
    ranks, words = layouts(model)[layout]
    result = folder / "round.json"
    run_mpi4dl(flags, ranks, "bench", "train", *model_flags(model, flags, folder), *words, "--against", "nothing",
               "--warmup", 1, "--iterations", flags.steps, "--json", result)
    return json.loads(result.read_text())["seconds"]


# Do both sides compute the same?


def write_png(path, pixels):
    """Pixels: a tensor of bytes, [H, W, 3]."""
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + bytes(row.flatten().tolist()) for row in pixels)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # RGB with 8 bits
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 1)) +
                     chunk(b"IEND", b""))


def write_images(folder, pixels, labels):
    """A CSV file that names one image for each label."""
    lines = ["path,label"]
    for number, label in enumerate(labels.tolist()):
        write_png(folder / f"{number}.png", pixels[number])
        lines.append(f"{number}.png,{label}")
    (folder / "images.csv").write_text("\n".join(lines) + "\n")
    return folder / "images.csv"


def disagreement(before, measured, expected):
    """How far two updates of the same weights are apart: the worst tensor's distance over its update. Biases
    in front of a batch norm have no gradient but rounding, hence the floor, a millionth of the whole update."""
    names = [name for name, value in expected.items() if value.is_floating_point()]
    updates = {name: expected[name] - before[name] for name in names}
    floor = 1e-6 * sum(update.norm() ** 2 for update in updates.values()).sqrt()
    return max(((measured[name] - expected[name]).norm() / torch.max(updates[name].norm(), floor)).item() for name in names)


def check(model, flags, folder, steps=2):
    """How far apart the two sides are after some steps in float64, for each layout."""
    torch.manual_seed(1)
    torch.set_num_threads(cores())
    network = make_model(model, flags).double()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    torch.save(before, folder / "before.pt")
    pixels = torch.randint(256, (flags.batch_size, flags.image_size, flags.image_size, 3), dtype=torch.uint8)
    labels = torch.randint(CLASSES, (flags.batch_size,))
    images = ((pixels.permute(0, 3, 1, 2).float() / 255 - 0.5) / 0.5).double()  # rounded as mpi4dl does
    training = Training(network, images, labels)
    for _ in range(steps):
        training.step()
    expected = {name: value.clone() for name, value in network.state_dict().items()}
    data = write_images(folder, pixels, labels)
    apart = {}
    for layout, (ranks, words) in layouts(model).items():
        kept = folder / f"ranks-{ranks}"
        run_mpi4dl(flags, ranks, "train", *model_flags(model, flags, folder), *words, "--dtype", "float64",
                   "--app", "medical", "--datapath", data, "--num-epochs", steps,
                   "--weights", folder / "before.pt", "--checkpoint-dir", kept)
        after = folder / "after.safetensors"
        run_mpi4dl(flags, 1, "export", "--checkpoint", kept, "--to", "safetensors", "--out", after)
        measured = read_weights(after)
        network.load_state_dict(measured)  # the same names and shapes, or an error
        apart[layout] = disagreement(before, measured, expected)
    return apart


def prepare(model, flags, folder):
    """Writes the file of a model of a collection. Its parameters, and whether its output is a map."""
    network = make_model(model, flags)
    if model not in BUILT_IN:
        export(network, flags, folder)
    with torch.no_grad():
        output = network(torch.zeros(2, 3, flags.image_size, flags.image_size))
    return sum(value.numel() for value in network.parameters()), output.ndim > 2


# The benchmark.


def measure(model, flags, folder):
    """Seconds of each side: a list for each round."""
    baselines = []
    for name in BASELINES + [COMPILED] * flags.compile:
        start = time.perf_counter()
        baselines.append(Baseline(name, model, flags))
        print(f"{name}: first step after {time.perf_counter() - start:.1f} s", flush=True)
    sides = {name: lambda name=name: mpi4dl_round(flags, model, name, folder) for name in layouts(model)}
    sides.update({side.name: lambda side=side: side.round(flags.steps) for side in baselines})
    seconds = {name: [] for name in sides}
    for number in range(flags.rounds):
        # There and back, so that a machine that gets slower is not unfair to whoever is last.
        for name in list(sides) if number % 2 == 0 else reversed(list(sides)):
            seconds[name].append(sides[name]())
        print(f"round {number + 1} of {flags.rounds}:", ", ".join(
            f"{name} {median(rounds[-1]):.3f} s" for name, rounds in seconds.items()), flush=True)
    for side in baselines:
        side.end()
    return seconds


def summarise(seconds, batch):
    """Figures of each side; ratios are over the faster one of PyTorch's two layouts."""
    steps = {name: sum(rounds, []) for name, rounds in seconds.items()}
    better = min(BASELINES, key=lambda name: median(steps[name]))

    def ratios(name):
        return [median(baseline) / median(measured) for measured, baseline in zip(seconds[name], seconds[better])]

    return {name: {"images_per_s": batch / median(steps[name]), "ratio": median(steps[better]) / median(steps[name]),
                   "ratio_of_rounds": ratios(name), "seconds": seconds[name]} for name in seconds}


def print_table(sides):
    print(f"\n{'':34}{'images/s':>10}{'s a step':>10}{'least':>8}{'most':>8}{'ratio':>8}   in rounds")
    for name, side in sides.items():
        steps, rounds = sum(side["seconds"], []), side["ratio_of_rounds"]
        print(f"{name:34}{side['images_per_s']:10.3f}{median(steps):10.3f}{min(steps):8.3f}{max(steps):8.3f}"
              f"{side['ratio']:8.2f}   {min(rounds):.2f} to {max(rounds):.2f}")
    print("ratio: images/s over those of PyTorch's faster layout, medians of all steps\n", flush=True)


def title(model, flags):
    return {"resnet": f"resnet depth {flags.depth}",
            "amoebanet": f"amoebanet ({flags.num_layers}, {flags.num_filters})"}.get(model, model)


def run(model, flags):
    print(f"== {title(model, flags)}, {flags.image_size} x {flags.image_size}, batch {flags.batch_size}, float32, "
          f"PyTorch {torch.__version__}, {cores()} cores", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parameters, is_map = prepare(model, flags, folder)
        if is_map:
            print("maps have no labels to train with, so that only scripts/zoo.sh compares a step of it")
        apart = {} if is_map else check(model, flags, folder)
        for layout, distance in apart.items():
            print(f"{layout}: {parameters} parameters, updates {distance:.1e} apart from PyTorch's in float64",
                  flush=True)
            if not distance <= AGREE_WITHIN:  # nor where it is no number
                raise Failure(f"PyTorch and '{layout}' do not train alike: updates are {distance:.1e} apart, which "
                              f"should be at most {AGREE_WITHIN:.0e}")
        sides = summarise(measure(model, flags, folder), flags.batch_size)
    print_table(sides)
    return {"parameters": parameters, "apart": apart, "sides": sides}


def parse_flags():
    parser = argparse.ArgumentParser(
        description="Train in PyTorch alone, alternating with mpi4dl bench train, on all cores that this process may use "
        "(taskset -c 0-3 gives it four), and print ratios.", formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--model", action="append", metavar="MODEL", help="resnet, amoebanet (both unless given), or a net of "
                        "a collection from pip, such as torchvision/resnet50, timm/convnext_atto or smp/Unet/resnet18")
    parser.add_argument("--depth", type=int, default=110, help="layers of the ResNet, version 2")
    parser.add_argument("--num-layers", type=int, default=6, help="normal cells of the AmoebaNet")
    parser.add_argument("--num-filters", type=int, default=64, help="filters of the AmoebaNet")
    parser.add_argument("--image-size", type=int, default=256, help="pixels of a side")
    parser.add_argument("--batch-size", type=int, default=2, help="images of a step")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each side")
    parser.add_argument("--steps", type=int, default=2, help="timed steps of a round")
    parser.add_argument("--compile", action="store_true", help="torch.compile too, which may take minutes to begin")
    parser.add_argument("--mpi4dl", default=str(PROJECT / "build/release/bin/mpi4dl"), help="the program")
    parser.add_argument("--json", help="write all figures to this file")
    flags = parser.parse_args()
    for name in ("image_size", "batch_size", "rounds", "steps"):
        if getattr(flags, name) < 1:
            parser.error(f"--{name.replace('_', '-')} {getattr(flags, name)} is too small; use at least 1")
    for model in flags.model or []:
        if model not in BUILT_IN and "/" not in model:
            parser.error(f"--model {model} is neither resnet, amoebanet nor a net of a collection, such as torchvision/{model}")
    if flags.compile and not hasattr(torch, "compile"):
        parser.error(f"--compile needs PyTorch 2, and this is {torch.__version__}")
    if not os.access(flags.mpi4dl, os.X_OK):
        parser.error(f"there is no program {flags.mpi4dl}; build it (scripts/quickstart.sh) or name it with --mpi4dl")
    return flags


def main():
    flags = parse_flags()
    result = {"torch": torch.__version__, "cores": cores(), "flags": vars(flags), "models": {}}
    try:
        for model in flags.model or BUILT_IN:
            result["models"][model] = run(model, flags)
    except Failure as problem:
        print(f"pytorch.py: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    if flags.json:
        Path(flags.json).write_text(json.dumps(result, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
