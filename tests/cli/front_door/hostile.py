"""hostile.py FILES COUNT: makes files of models and of weights that are damaged or hostile, in the folder where it is started,
and so many more by changing a few bytes of sound ones."""
import io
import json
import pathlib
import random
import struct
import sys
import zipfile

files, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])


def archive(entries):
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as made:
        for name, content in entries.items():
            made.writestr(zipfile.ZipInfo(name), content)
    return written.getvalue()


def tensor(name):
    return {"as_tensor": {"name": name}}


def model(calls, channels=2):
    sizes = [{"as_int": length} for length in (2, channels, 4, 4)]
    nodes = [{"target": "torch.ops.aten.relu.default", "inputs": [{"name": "self", "arg": tensor(read)}],
              "outputs": [tensor(made)], "metadata": {}} for read, made in calls]
    return json.dumps({"verifiers": ["TRAINING"], "graph_module": {
        "graph": {"nodes": nodes, "tensor_values": {"x": {"sizes": sizes}}},
        "signature": {"input_specs": [{"user_input": {"arg": tensor("x")}}],
                      "output_specs": [{"user_output": {"arg": tensor("y")}}]}}})


def program(text):
    return archive({"net/models/model.json": text,
                    "net/data/weights/model_weights_config.json": '{"config": {}}',
                    "net/data/constants/model_constants_config.json": '{"config": {}}'})


def write(name, content):
    pathlib.Path(name).write_bytes(content)


def with_place(content, entry, place):
    """Changes where the directory says that an entry begins."""
    at = -1
    for _ in range(entry + 1):
        at = content.index(b"PK\1\2", at + 1)
    return content[:at + 42] + struct.pack("<I", place) + content[at + 46:]


sound = program(model([("x", "y")]))
write("sound.pt2", sound)
write("short.pt2", sound[:-30])
write("place.pt2", with_place(sound, 0, 5))
inner = archive({"net/b": "b"})  # its header lies within the bytes of the first entry
around = archive({"net/a": inner, "net/b": "b"})
write("overlap.pt2", with_place(around, around.count(b"PK\1\2") - 1, around.index(b"PK\3\4", 4)))
write("absolute.pt2", archive({"/etc/passwd": "x"}))
write("deep.pt2", program("[" * 1000000))
write("text.pt2", program("import os"))
write("cycle.pt2", program(model([("z", "y"), ("y", "z")])))
write("huge.pt2", program(model([("x", "y")], channels=2**63 - 1)))

touch = b"touch executed"
code = b"\x80\2cos\nsystem\nX" + struct.pack("<I", len(touch)) + touch + b"\x85R."
saved = archive({"archive/data.pkl": code, "archive/version": "3\n"})
write("code.pt", saved)
write("code.pt2", archive({"net/models/model.json": model([("x", "y")]), "net/data/weights/model.pt": saved}))
write("nested.pt", archive({"archive/data.pkl": b")" + b"\x85" * 3000000 + b".", "archive/version": "3\n"}))


def text(word):
    return b"X" + struct.pack("<I", len(word)) + word.encode()


write("outside.pt", archive({"archive/data.pkl": b"\x80\2}" + text("w") + b"ctorch._utils\n_rebuild_tensor_v2\n((" + text(
    "storage") + b"ctorch\nFloatStorage\n" + text("../../../etc/passwd") + text("cpu") + b"K\1tQK\0K\1\x85K\1\x85tRs.", "archive/version": "3\n"}))
write("header.safetensors", struct.pack("<Q", 2**63) + b"{}")


def changed(content, dice, letters=bytes(range(256))):
    content = bytearray(content)
    for _ in range(dice.randint(1, 10)):
        content[dice.randrange(len(content))] = dice.choice(letters)
    return bytes(content)


def with_changed_entry(path, dice):
    """Changes an entry, whose checksum is then right."""
    with zipfile.ZipFile(path) as whole:
        entries = {name: whole.read(name) for name in whole.namelist()}
    texts = [name for name in entries if name.endswith((".json", ".pkl", ".pt"))]
    name = dice.choice(texts)
    letters = bytes(range(256)) if name.endswith((".pkl", ".pt")) else b'0123456789-{}[]",:aetx._'
    entries[name] = changed(entries[name], dice, letters)
    return archive(entries)


pathlib.Path("mutated").mkdir()
programs = sorted(files.glob("*.pt2"))
assert programs, files
for number in range(count):
    dice = random.Random(number)
    path = dice.choice(programs)
    content = changed(path.read_bytes(), dice) if dice.random() < 0.3 else with_changed_entry(path, dice)
    if number % 4 == 3:  # weights, of which there are some in the older files
        with zipfile.ZipFile(dice.choice([name for name in programs if ".torch26." in name.name])) as whole:
            weights = [name for name in whole.namelist() if name.endswith("dict.pt") or name.endswith("weights/model.pt")]
            pathlib.Path("weights.pt").write_bytes(whole.read(weights[0]))
        content = with_changed_entry("weights.pt", dice)
        write(f"mutated/{number}.pt", content)
    else:
        write(f"mutated/{number}.pt2", content)
