"""seeds.py FILES SEEDS: takes the files of tests/data/import apart, into a folder of seeds for each program that libFuzzer drives,
and lists the words that occur in them."""
import io
import json
import pathlib
import re
import shutil
import struct
import sys
import zipfile

files, seeds = (pathlib.Path(word) for word in sys.argv[1:])
words = set()


def seed(target, name, content):
    folder = seeds / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def entry(archive, end):
    names = [name for name in archive.namelist() if name.endswith(end)]
    return archive.read(names[0]) if names else None


def compact(text):
    """Leaves out what is not read, so that changes more often hit what is."""
    model = json.loads(text)
    for node in model.get("graph_module", {}).get("graph", {}).get("nodes", []):
        words.add(node["target"])
        words.update(argument["name"] for argument in node["inputs"])
        node["metadata"].pop("stack_trace", None)
        node["metadata"].pop("torch_fn", None)
    model.get("graph_module", {}).pop("module_call_graph", None)
    return json.dumps(model, separators=(",", ":")).encode()


def add_program(path):
    shutil.copy(path, seeds / "exported_program")
    with zipfile.ZipFile(path) as archive:
        parts = [entry(archive, end) for end in ("models/model.json", "model_weights_config.json", "model_constants_config.json")]
        if all(parts):
            seed("model_json", path.stem, b"\0".join(compact(part) for part in parts))
        for name in archive.namelist():
            if not name.endswith(".pt"):
                continue
            saved = archive.read(name)
            seed("state_dict", path.stem + "." + pathlib.Path(name).name, saved)
            with zipfile.ZipFile(io.BytesIO(saved)) as inner:
                seed("state_dict", path.stem + "." + pathlib.Path(name).stem + ".pkl", entry(inner, "data.pkl"))


(seeds / "exported_program").mkdir(parents=True, exist_ok=True)
for path in sorted(files.glob("*.pt2")):
    add_program(path)
for path in sorted(files.glob("*.safetensors")):
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    seed("safetensors", path.name + ".header", content[8:8 + length])
    if len(content) < 10000:
        seed("safetensors", path.name, content)
for path in pathlib.Path("src/graph").rglob("*.hpp"):
    text = path.read_text()
    words.update(name.replace(" ", "_") for name in re.findall(r'kName = "([^"]+)"', text))
    words.update(name + "=" for name in re.findall(r'Field\{"([^"]+)"', text))
    words.update(re.findall(r'\{"(\w+)", ', text))
words.update(re.findall(r'"(as_\w+)"', pathlib.Path("src/import/exported_program.cpp").read_text()))
words.update(re.findall(r'TableRow\{"([^"]+)"', "".join(path.read_text() for path in pathlib.Path("src/import/operators").glob("*.cpp"))))
(seeds / "words").write_text("".join(f'"{word}"\n' for word in sorted(words - {""})))
