"""What PyTorch says that a net computes, in float64, and the safetensors files that hold it."""
import json
import struct

import torch
import torch.nn.functional as F

_TYPES = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.int64: "I64"}


def loss_of(output, labels):
    """The mean cross-entropy of logits; for maps, half the mean square of their values."""
    return F.cross_entropy(output, labels) if output.ndim == 2 else 0.5 * output.square().mean()


def step(model, image, labels):
    """Output, loss, every gradient and the statistics after one forward and backward pass in train
    mode, by name. Turns the model into one of float64."""
    model = model.double().train()
    output = model(image.double())
    loss = loss_of(output, labels)
    loss.backward()
    tensors = {"output": output.detach(), "loss": loss.detach()}
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            tensors["grad/" + name] = parameter.grad
    for name, buffer in model.named_buffers():
        if name.endswith(("running_mean", "running_var")):
            tensors["stat/" + name] = buffer
    return tensors


OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.01, momentum=0.9, weight_decay=1e-3),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.001, weight_decay=0.1)}


def trained(model, image, labels, optimizer, steps=3):
    """Parameters and statistics after some steps in train mode, always with the same images, by
    OPTIMIZER/NAME. Turns the model into one of float64, and leaves it trained."""
    model = model.double().train()
    learner = OPTIMIZERS[optimizer](model.parameters())
    for _ in range(steps):
        learner.zero_grad()
        loss_of(model(image.double()), labels).backward()
        learner.step()
    tensors = {name: parameter for name, parameter in model.named_parameters()
               if parameter.grad is not None}
    tensors.update((name, buffer) for name, buffer in model.named_buffers()
                   if name.endswith(("running_mean", "running_var")))
    return {f"{optimizer}/{name}": values.detach().clone() for name, values in tensors.items()}


def write_safetensors(path, tensors):
    """Writes the length of a header, the header (JSON), then the bytes of all tensors."""
    header, end = {}, 0
    for name, tensor in tensors.items():
        begin, end = end, end + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": _TYPES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(tensor.detach().contiguous().numpy().tobytes())


def read_safetensors(path):
    """A dict of tensors."""
    types = {name: dtype for dtype, name in _TYPES.items()}
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = bytearray(file.read())
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        flat = torch.frombuffer(data[begin:end], dtype=types[entry["dtype"]])
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


def largest_error(found, expected):
    """The largest error of all tensors and whose it is. An error is the norm of the difference over
    the norm of what was expected; a gradient's is measured against the whole gradient where it is
    next to nothing, as mpi4dl verify does."""
    whole = sum(value.norm() ** 2 for name, value in expected.items() if "grad/" in name) ** 0.5
    worst = (0.0, "")
    for name, value in expected.items():
        size = value.norm()
        if name.startswith("grad/"):
            size = whole if size < 1e-9 * whole else max(size, 1e-6 * whole)
        error = (found[name].double() - value).norm() / max(size, 1e-300)
        worst = max(worst, (float(error), name))
    return worst
