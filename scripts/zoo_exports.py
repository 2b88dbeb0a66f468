"""What zoo.py and its kin share: processes, and models that PyTorch exports."""
import json
import multiprocessing
import os
import pathlib
import shutil
import subprocess
import sys
import traceback

os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = pathlib.Path(__file__).absolute().parents[1]
BINARIES = ROOT / "build" / "release" / "bin"
PROGRAM = BINARIES / "mpi4dl"
HOUR = 3600


def run(command, log, timeout=HOUR):
    """The exit code of a command, and the last line that it wrote."""
    with open(log, "w") as output:
        try:
            code = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT,
                                  stdin=subprocess.DEVNULL, timeout=timeout).returncode
        except subprocess.TimeoutExpired:
            return -1, f"took more than {timeout} s"
    return code, last_line(log)


def on_ranks(ranks, command):
    """The command that runs a command on so many ranks."""
    return command if ranks == 1 else ["mpirun", "-np", str(ranks), *command]


def last_line(log):
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else ""


def in_child(function, arguments, log, timeout=HOUR):
    """Like run, for a function: a copy of this process calls it, whose memory ends with it. To start
    Python and to import the collections takes longer than to export most models."""
    child = multiprocessing.get_context("fork").Process(target=logged, args=(function, arguments, log))
    child.start()
    child.join(timeout)
    if child.is_alive():
        child.kill()
        child.join()
        return -1, f"took more than {timeout} s"
    return child.exitcode, last_line(log)


def logged(function, arguments, log):
    with open(log, "w") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    try:
        function(*arguments)
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


def expected_values():
    """The module that says what PyTorch computes."""
    sys.path.insert(0, str(ROOT / "tests" / "data" / "import"))
    import expected
    return expected


def fresh_folder(name, kind):
    """An empty folder for what is done with a model."""
    folder = ROOT / "build" / "zoo" / kind / name.replace("/", "-")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def export(name, folder):
    """Writes net.pt2, expected.safetensors and facts.json."""
    import torch
    import zoo_models
    expected = expected_values()
    model, image = zoo_models.build(name)
    facts = {"image": list(image.shape[1:]), "pytorch": torch.__version__,
             "parameters": sum(parameter.numel() for parameter in model.parameters())}
    torch.export.save(torch.export.export(model, (image,)), folder / "net.pt2")
    labels = torch.arange(len(image)) * 2 % 5
    values = {"input": image, **expected.step(model, image, labels)}
    if values["output"].ndim == 2:
        values["labels"] = labels
    expected.write_safetensors(folder / "expected.safetensors", values)
    (folder / "facts.json").write_text(json.dumps(facts))
