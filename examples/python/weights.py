"""Reads the files of `mpi4dl export`, which hold parameters and batch norm statistics by name."""
import json
import struct

import torch

_TYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
          "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool}


def read_safetensors(path):
    """A dict of tensors; the package safetensors does the same, and faster."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = bytearray(file.read())
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        values = torch.frombuffer(data, dtype=_TYPES[entry["dtype"]], offset=begin,
                                  count=(end - begin) // torch.tensor([], dtype=_TYPES[entry["dtype"]]).element_size())
        tensors[name] = values.reshape(entry["shape"])
    return tensors


def read_weights(path):
    """A dict for load_state_dict, from a .pt or .safetensors file."""
    if str(path).endswith(".safetensors"):
        return read_safetensors(path)
    return torch.load(path, weights_only=True)
