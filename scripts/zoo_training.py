"""Trains models of PyTorch's collections beside PyTorch, and hands their weights back; scripts/zoo.sh
says how it is called."""
import sys

from zoo_exports import (BINARIES, PROGRAM, ROOT, expected_values, fresh_folder, in_child, on_ranks,
                         run)

MODELS = ("torchvision/resnet18", "torchvision/mobilenet_v3_small", "torchvision/densenet121",
          "timm/convnext_atto", "timm/regnety_002")
STAGES = "2x2,1"
RANKS = 5
SIZE = (64, 64)
OPTIMIZERS = ("sgd", "adamw")


def prepare(name, folder):
    """Writes net.pt2 and, of each optimizer, what it makes of the model in three steps."""
    import torch
    import zoo_models
    expected = expected_values()
    model, image = zoo_models.build(name, [SIZE])
    torch.export.save(torch.export.export(model, (image,)), folder / "net.pt2")
    labels = torch.arange(len(image)) * 2 % 5
    for optimizer in OPTIMIZERS:
        model, image = zoo_models.build(name, [SIZE])
        expected.write_safetensors(folder / f"{optimizer}.safetensors", {
            "input": image, "labels": labels, **expected.trained(model, image, labels, optimizer)})


def load_back(name, folder):
    """Loads what was trained into the Python model, and compares the logits of both."""
    import torch
    import zoo_models
    sys.path.insert(0, str(ROOT / "examples" / "python"))
    from weights import read_weights
    model, _ = zoo_models.build(name, [SIZE])
    model.load_state_dict(torch.load(folder / "trained.pt", weights_only=True), strict=True)
    answer = read_weights(folder / "logits.safetensors")
    with torch.no_grad():
        expected = model.eval()(answer["images"].contiguous())
    apart = (answer["logits"] - expected).norm() / expected.norm()
    print(f"{apart:.1e} apart")
    if not apart <= 1e-5:
        raise ValueError("its logits differ")


def steps_of(name, folder):
    """What is done, in this order: what it is called, and a function that returns an exit code and a
    line."""
    net, kept, check = folder / "net.pt2", folder / "run", BINARIES / "tests" / "import_check"

    def command(what, ranks, *words):
        return what, lambda: run(on_ranks(ranks, list(words)), folder / f"{what}.log")

    yield "export", lambda: in_child(prepare, (name, folder), folder / "export.log")
    for optimizer in OPTIMIZERS:
        yield command(optimizer, RANKS, check, net, folder / f"{optimizer}.safetensors", STAGES,
                      optimizer)
    yield command("train", RANKS, PROGRAM, "train", "--model", net, "--stages", STAGES,
                  "--batch-size", "2", "--num-images", "10", "--eval-every", "never",
                  "--lr", "0.001", "--checkpoint-dir", kept)
    yield command("write", 1, PROGRAM, "export", "--checkpoint", kept, "--to", "pt", "--out",
                  folder / "trained.pt")
    yield command("logits", 1, BINARIES / "tests" / "write_logits", kept,
                  folder / "logits.safetensors", *map(str, SIZE))
    yield "load", lambda: in_child(load_back, (name, folder), folder / "load.log")


def main():
    import torch  # noqa: F401, once for all copies of this process
    names = sys.argv[1:] or MODELS
    wrong = 0
    for name in names:
        told = []
        for what, step in steps_of(name, fresh_folder(name, "training")):
            code, line = step()
            if code != 0:
                wrong += 1
                told.append(f"{what} FAILED: {line}")
                break
            if what in (*OPTIMIZERS, "load"):
                told.append(f"{what} {line}")
        print(f"{name:34} {'; '.join(told)}", flush=True)
    print(f"{len(names)} models, {wrong} wrong")
    sys.exit(1 if wrong else 0)


main()
