#!/usr/bin/env bash
# The layers of docs/architecture.md: an #include in src/ points up its table, never down; arithmetic layers include
# neither libtorch nor MPI; and the diagram there is made of the real includes (`layers_test.sh --write` draws it anew).
# Only cli/ knows flags: no text below it names one, and the texts to which cli/flag_names.cpp appends some are there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec python3 - "$@" <<'PYTHON'
import pathlib, re, sys

PAGE = pathlib.Path("docs/architecture.md")
START, END = "<!-- layers: made by tests/layers_test.sh --write -->\n", "<!-- end of layers -->\n"
page = PAGE.read_text()
table = page[page.index("| layer |"):].split("\n\n")[0]
layers = [name for row in table.splitlines() for name in re.findall(r"`(\w+)/`", row.split("|")[1])]
arithmetic = set(layers[: layers.index("memory")])
place = {name: i for i, name in enumerate(layers)}
complaints = []
uses = {name: set() for name in layers}

folders = sorted(path.name for path in pathlib.Path("src").iterdir() if path.is_dir())
if folders != sorted(layers):
    complaints.append(f"folders of src/ and the table differ: {sorted(set(folders) ^ set(layers))}")
for source in sorted(pathlib.Path("src").rglob("*.?pp")):
    layer = source.parts[1]
    for line, text in enumerate(source.read_text().splitlines(), 1):
        where = f"{source}:{line}"
        if own := re.match(r'#include "(\w+)/', text):
            if place[own[1]] > place[layer]:
                complaints.append(f"{where}: {layer}/ includes {own[1]}/, which is below it")
            elif own[1] != layer:
                uses[layer].add(own[1])
        elif re.match(r"#include <(ATen|c10|torch|mpi)", text) and layer in arithmetic:
            complaints.append(f"{where}: {layer}/ is arithmetic alone, and includes libtorch or MPI")

# The commands of mpi4dl-baseline are given to it by its flags.
FOR_BASELINE = {"src/bench/training_benchmark.cpp", "src/bench/baseline_process.cpp"}
below = ""
for source in sorted(pathlib.Path("src").rglob("*.?pp")):
    if source.parts[1] in ("cli", "baseline"):
        continue
    code = re.sub(r"//.*", "", source.read_text())
    texts = re.findall(r'"((?:[^"\\\n]|\\.)*)"', re.sub(r'"\s*\n\s*"', "", code))
    below += "\n".join(texts) + "\n"
    if str(source) not in FOR_BASELINE:
        complaints += [f"{source}: only cli/ knows flags: {text!r}" for text in texts if re.search(r"(^|\W)--[a-z]", text)]
for words, flag in re.findall(r'\{"([^"]+)", "(--[^"]+)"\}', pathlib.Path("src/cli/flag_names.cpp").read_text()):
    if words not in below:
        complaints.append(f"src/cli/flag_names.cpp: no text says {words!r}, so {flag} is never named")

def reached(layer):
    return uses[layer].union(*(reached(other) for other in uses[layer]))

# Drawn without what follows from the other lines.
lines = ["```mermaid\n", "flowchart BT\n"]
for layer in layers:
    direct = uses[layer] - set().union(*(reached(other) for other in uses[layer]))
    lines += [f"  {layer} --> {other}\n" for other in sorted(direct, key=place.get)]
drawn = START + "".join(lines) + "```\n" + END
before, _, rest = page.partition(START)
old, _, after = rest.partition(END)
if "--write" in sys.argv:
    PAGE.write_text(before + drawn + after)
elif START + old + END != drawn:
    complaints.append(f"the diagram of {PAGE} is not that of the includes; run tests/layers_test.sh --write")
print("\n".join(complaints) or f"{len(layers)} layers, {sum(map(len, uses.values()))} uses, all of them upwards")
sys.exit(bool(complaints))
PYTHON
