#!/usr/bin/env bash
# Images as people have them: classes with names, patients, no classes at all, and files that are broken. A
# model trained on two ranks keeps the names of its classes; every layout predicts and leaves out the same.
# shellcheck source-path=SCRIPTDIR source=../support/program.sh
. "$(dirname "$0")/../support/program.sh"

data=$scratch/data
weights=$scratch/checkpoints
model=(--model resnet --resnet-version 1 --depth 8 --num-classes 3 --dtype float64)

# Twelve images of 32x32 pixels, four of each class; sorted, the classes are benign, normal and tumour.
python3 - "$data" <<'END'
import os, shutil, struct, sys, zlib
root = sys.argv[1]
names = ["benign", "normal", "tumour"]

def png(side, seed):
    rows = b"".join(b"\0" + bytes((x * (y + seed) + 83 * c * seed) % 256 for x in range(side) for c in range(3))
                    for y in range(side))
    chunk = lambda name, body: struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))

def write(name, content):
    path = os.path.join(root, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, "wb").write(content if isinstance(content, bytes) else content.encode())

def tiff(side):
    tags = [(256, side), (257, side), (258, 8), (259, 1), (262, 1), (273, 134), (277, 1), (278, side), (279, side * side)]
    return (b"II*\0\x08\0\0\0" + struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", t, 4, 1, v) for t, v in tags)
            + bytes(16) + bytes((7 * i) % 256 for i in range(side * side)))

for i in range(12):
    for name in (f"folders/{names[i % 3]}/{i}.png", f"flat/{i}.png", f"broken/{names[i % 3]}/{i}.png"):
        write(name, png(32, i + 1))
for i in (2, 5, 8, 11):
    write(f"some/tumour/{i}.png", png(32, i + 1))
    write(f"pets/{'cat' if i < 6 else 'dog'}/{i}.png", png(32, i + 1))
write("slide", tiff(32))
rows = lambda wanted: "".join(f"flat/{i}.png,{names[i % 3]},P{i // 3},x\n" for i in wanted)
write("names.csv", "path,label,patient,scanner\n" + rows(range(12)))
write("tumour.csv", "path,label,patient,scanner\n" + rows((2, 5, 8, 11)))
write("numbers.csv", "path,label\n" + "".join(f"flat/{i}.png,{i % 3}\n" for i in range(12)))
write("paths.csv", "path\n" + "".join(f"flat/{i}.png\n" for i in range(12)))
# Nothing, something that is no image, another size, and pixels that end too early.
write("broken/benign/0.png", b"")
write("broken/normal/4.png", "no pixels")
write("broken/tumour/8.png", png(20, 1))
write("broken/tumour/11.png", png(32, 12)[:-90])
write("broken/normal/7.png", png(32, 8)[:-90])
END

# mpi4dl RANKS ARGUMENT...
mpi4dl() {
  local ranks=$1
  shift
  run 120 "$ranks" "$MPI4DL" "$@"
}

# asks RANKS COMMAND DATA ARGUMENT...: of the trained model.
asks() {
  local ranks=$1 command=$2 path=$3
  shift 3
  mpi4dl "$ranks" "$command" --checkpoint "$weights" --dtype float64 --datapath "$data/$path" "$@"
}

# refuses CODE WORDS COMMAND...
refuses() {
  local code=$1 words=$2
  shift 2
  "$@"
  expect_exit "$code"
  expect_one_sentence "$words"
}

trains() {
  mpi4dl 2 train "${model[@]}" --datapath "$data/$1" --split-size 2 --batch-size 2 --lr 0.01 "${@:2}"
}

# Two of four patients, and with them half of each class, are held out.
learns_names() {
  trains names.csv --val-fraction 0.5 --checkpoint-dir "$weights"
  expect_exit 0
  expect_text "6 images"
  python3 - "$weights" <<'END' >>"$output" 2>&1 || complain "no names of classes in the checkpoint"
import glob, json, sys
manifest = json.load(open(sorted(glob.glob(sys.argv[1] + "/step-*/manifest.json"))[-1]))
assert manifest["classes"] == ["benign", "normal", "tumour"], manifest["classes"]
END
  refuses 2 "was trained with the classes benign, normal, tumour, not cat, dog, tumour" \
    trains other.csv --val-fraction 0.5 --num-epochs 2 --checkpoint-dir "$weights" --resume auto
}

# evaluates NAME RANKS DATA ARGUMENT...
evaluates() {
  local name=$1
  shift
  asks "$1" evaluate "$2" --json "$scratch/$name.json" "${@:3}"
  expect_exit 0
}

# The classes have the model's numbers, whichever of them a folder has.
matches_by_name() {
  evaluates all 1 folders
  expect_text "as tumour"
  evaluates csv 4 names.csv --split-size 4
  evaluates numbers 1 numbers.csv
  evaluates some 5 some --num-spatial-parts 4
  evaluates tumour 1 tumour.csv
  python3 - "$scratch" <<'END' >>"$output" 2>&1 || complain "classes are not matched by their names"
import json, sys
result = {name: json.load(open(f"{sys.argv[1]}/{name}.json")) for name in ("all", "csv", "numbers", "some", "tumour")}
for name in result:
    assert result[name]["classes"] == ["benign", "normal", "tumour"], name
for name in ("csv", "numbers"):
    assert abs(result[name]["loss"] - result["all"]["loss"]) < 1e-9 and result[name]["confusion"] == result["all"]["confusion"], name
for name in ("some", "tumour"):
    assert result[name]["confusion"] == [[0] * 3, [0] * 3, result["all"]["confusion"][2]], (name, result)
END
  refuses 2 "has a class 'cat' that the model does not know: its classes are benign, normal, tumour" asks 2 evaluate pets
  # Without names, positions count, and there must be all of them.
  mpi4dl 1 export --checkpoint "$weights" --to safetensors --out "$scratch/plain.safetensors"
  expect_exit 0
  refuses 2 "has 1 classes (tumour), but the number of classes is 3; use 1 (--num-classes)" \
    mpi4dl 1 evaluate "${model[@]}" --weights "$scratch/plain.safetensors" --datapath "$data/some"
}

# Whatever says where the images are and however many ranks look at them: the same predictions.
predicts_without_classes() {
  asks 1 predict folders --out "$scratch/folders.csv"
  asks 1 predict flat --out "$scratch/flat.csv"
  expect_exit 0
  asks 4 predict paths.csv --split-size 4 --out "$scratch/paths.csv"
  expect_exit 0
  asks 5 predict flat/7.png --num-spatial-parts 4 --out "$scratch/one.csv"
  expect_exit 0
  asks 1 predict slide --out "$scratch/slide.csv"
  expect_exit 0
  python3 - "$scratch" <<'END' >>"$output" 2>&1 || complain "predictions differ"
import csv, os, sys
tables = {name: list(csv.DictReader(open(f"{sys.argv[1]}/{name}.csv"))) for name in ("folders", "flat", "paths", "one", "slide")}
known = {os.path.basename(row["name"]): row for row in tables["folders"]}
assert known["3.png"]["label"] == "benign" and known["5.png"]["label"] == "tumour"
assert [len(tables[name]) for name in ("folders", "flat", "paths", "one", "slide")] == [12, 12, 12, 1, 1]
assert tables["slide"][0]["predicted"] in ("benign", "normal", "tumour")
for name in ("flat", "paths", "one"):
    for row in tables[name]:
        expected = known[os.path.basename(row["name"])]
        assert list(row) == ["name", "label", "predicted", "p_benign", "p_normal", "p_tumour"], row
        assert row["label"] == "" and row["predicted"] == expected["predicted"], row
        for field in ("p_benign", "p_normal", "p_tumour"):
            assert abs(float(row[field]) - float(expected[field])) < 1e-9, row
END
  refuses 2 "nothing says which class $data/flat/0.png has" asks 2 evaluate flat
}

# Three of twelve are found by their headers, two more by their pixels.
leaves_out_broken_ones() {
  local counts="12 images: 9 readable, 2 cannot be opened (first: cannot read $data/broken/benign/0.png:"
  refuses 1 "$counts" trains broken
  refuses 1 "1 cannot be shown as asked for ($data/broken/tumour/8.png has 20x20 pixels" asks 4 evaluate broken --split-size 2
  refuses 1 "mend or remove them, or use --on-bad-image skip" asks 2 predict broken --out "$scratch/broken.csv"
  evaluates broken1 1 broken --on-bad-image skip
  expect_text "7 images (5 of 12 left out), with any that were trained on, in"
  expect_text "$counts"
  evaluates broken4 4 broken --on-bad-image skip --split-size 2 --batch-size 2
  evaluates broken5 5 broken --on-bad-image skip --num-spatial-parts 4 --batch-size 3
  [ "$(grep -c '^mpi4dl: left out: ' "$output")" = 5 ] || complain "not five images are said to be left out"
  asks 5 predict broken --on-bad-image skip --num-spatial-parts 4 --out "$scratch/broken.csv"
  expect_exit 0
  expect_text "5 of 12 left out"
  python3 - "$scratch" <<'END' >>"$output" 2>&1 || complain "layouts leave out different images"
import csv, json, os, sys
results = [json.load(open(f"{sys.argv[1]}/broken{ranks}.json")) for ranks in (1, 4, 5)]
for result in results:
    assert result["images"] == 7 and result["left_out"] == 5 and result["confusion"] == results[0]["confusion"]
    assert abs(result["loss"] - results[0]["loss"]) < 1e-9
known = {os.path.basename(row["name"]): row for row in csv.DictReader(open(f"{sys.argv[1]}/folders.csv"))}
rows = list(csv.DictReader(open(f"{sys.argv[1]}/broken.csv")))
bad = {os.path.basename(row["name"]): row for row in rows if row["error"]}
assert len(rows) == 12 and sorted(bad) == ["0.png", "11.png", "4.png", "7.png", "8.png"]
assert "20x20 pixels" in bad["8.png"]["error"] and bad["11.png"]["error"].startswith("cannot read ")
for row in bad.values():
    assert row["label"] and row["predicted"] == row["p_benign"] == row["p_tumour"] == ""
for row in rows:
    if not row["error"]:
        expected = known[os.path.basename(row["name"])]
        assert row["label"] == expected["label"] and row["predicted"] == expected["predicted"]
        assert abs(float(row["p_tumour"]) - float(expected["p_tumour"])) < 1e-9
END
  # Whichever part they are in.
  trains broken --on-bad-image skip --val-fraction 0.5 --num-epochs 2
  expect_exit 0
  expect_text "of 6 images for training, "
  local kept left
  kept=$(sed -n 's/^evaluation .*  \([0-9]*\) images in.*/\1/p' "$output" | tail -1)
  left=$(sed -n 's/^left out: .*, \([0-9]*\) of 6 for validation$/\1/p' "$output")
  [ $((kept + left)) = 6 ] || complain "$kept images were evaluated and $left left out of 6"
  grep -v "^mpi4dl: left out: " "$output" | grep -q "^mpi4dl: " && complain "more was said"
}

sed 's/benign/cat/; s/normal/dog/' "$data/names.csv" >"$data/other.csv"
learns_names
matches_by_name
predicts_without_classes
leaves_out_broken_ones
verdict
