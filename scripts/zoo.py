"""Imports models of PyTorch's collections and compares; scripts/zoo.sh says how it is called."""
import argparse
import collections
import fnmatch
import json
import re
import shutil
import sys
import time

from zoo_exports import BINARIES, PROGRAM, ROOT, export, in_child, on_ranks, run

FOLDER = ROOT / "build" / "zoo"
CHECK = BINARIES / "tests" / "import_check"
TILES_OF_HUGE = ("1x1", "1x2")
HUGE = 400e6  # parameters, of which four ranks have four copies in float64


# --- One model ---

def check_command(folder, tiles):
    rows, columns = map(int, tiles.split("x"))
    return on_ranks(rows * columns, [CHECK, folder / "net.pt2", folder / "expected.safetensors", tiles])


def try_model(name, folder, options):
    """What became of a model: a verdict, with a reason or with errors."""
    code, line = in_child(export, (name, folder), folder / "export.log")
    if code != 0:
        return {"verdict": "not exported", "reason": line}
    facts = json.loads((folder / "facts.json").read_text())
    if facts["parameters"] > options.largest * 1e6:
        return {**facts, **only_imported(folder)}
    tilings = options.tiles.split(",") if facts["parameters"] < HUGE else TILES_OF_HUGE
    return {**facts, **compare(folder, tilings)}


def only_imported(folder):
    code, _ = run([PROGRAM, "import", folder / "net.pt2"], folder / "import.log")
    verdict = {0: "imported", 2: "refused"}.get(code, "failed")
    reason = sentence(folder / "import.log") if code else "too large to be compared"
    return {"verdict": verdict, "reason": reason}


def sentence(log):
    """What the program says of a refused model, but for its file and size."""
    return re.sub(r".*? cannot be imported at \S+ ", "", " ".join(log.read_text().split()))


def compare(folder, tilings):
    errors = {}
    for tiles in tilings:
        code, line = run(check_command(folder, tiles), folder / f"check-{tiles}.log")
        if code == 2:
            return {"verdict": "refused", "reason": sentence(folder / f"check-{tiles}.log")}
        if code not in (0, 1) or not line.startswith("{"):
            return {"verdict": "failed", "reason": f"{tiles}: {line}", "errors": errors}
        errors[tiles] = json.loads(line)
        if code == 1:
            return {"verdict": "differs", "errors": errors,
                    "reason": f"{tiles}: {errors[tiles]['error']:.1e} in {errors[tiles]['of']}"}
    return {"verdict": "exact", "reason": "", "errors": errors}


def result_of(name, again, options):
    """The kept result, or a new one. What is as it should be leaves nothing else behind."""
    folder = FOLDER / name.replace("/", "-")
    kept = folder / "result.json"
    if kept.exists() and not again:
        return json.loads(kept.read_text())
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    start = time.monotonic()
    result = try_model(name, folder, options)
    result["seconds"] = round(time.monotonic() - start, 1)
    if result["verdict"] in ("exact", "imported", "not exported"):
        for path in [*folder.glob("net.pt2"), *folder.glob("*.safetensors")]:
            path.unlink()
    kept.write_text(json.dumps(result, indent=1) + "\n")
    return result


# --- What is printed ---

def row(name, result):
    errors = [f"{found['error']:.0e}" for found in result.get("errors", {}).values()]
    errors += ["-"] * (3 - len(errors))
    image = "x".join(map(str, result.get("image", []))) or "-"
    return f"{name:44} {image:>13} {result['verdict']:12} " + "".join(
        f"{error:>7}" for error in errors) + f"  {result['reason'][:400]}"


def summary(results):
    lines = ["collection    " + "".join(f"{word:>14}" for word in (*VERDICTS, "all"))]
    groups = collections.defaultdict(collections.Counter)
    for name, result in results.items():
        groups[name.split("/")[0]][result["verdict"]] += 1
        groups["all"][result["verdict"]] += 1
    groups["all"] = groups.pop("all", collections.Counter())  # last
    for group, counts in groups.items():
        lines.append(f"{group:14}" + "".join(f"{counts[verdict]:14}" for verdict in VERDICTS)
                     + f"{sum(counts.values()):14}")
    return "\n".join(lines)


VERDICTS = ("exact", "imported", "refused", "differs", "failed", "not exported")


def main():
    parser = argparse.ArgumentParser(prog="zoo.sh")
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN",
                        help="models whose name matches, such as 'timm/*' or '*resnet18'")
    parser.add_argument("--again", default="", metavar="PATTERN",
                        help="do not keep the results of these models or with this verdict")
    parser.add_argument("--largest", type=float, default=1000, metavar="MILLIONS",
                        help="models with more parameters are imported and not compared (1000)")
    parser.add_argument("--tiles", default="1x1,2x2,1x3", metavar="TILINGS",
                        help="what to compare on (1x1,2x2,1x3)")
    parser.add_argument("--table", action="store_true", help="print the results that there are")
    options = parser.parse_args()
    import zoo_models
    wanted = [name for name in zoo_models.names() if not options.only or any(
        fnmatch.fnmatch(name, pattern) for pattern in options.only)]
    results = {}
    for name in wanted:
        kept = FOLDER / name.replace("/", "-") / "result.json"
        if options.table and not kept.exists():
            continue
        verdict = json.loads(kept.read_text())["verdict"] if kept.exists() else ""
        again = any(fnmatch.fnmatch(text, options.again) for text in (name, verdict))
        results[name] = result_of(name, again, options)
        print(row(name, results[name]), flush=True)
    print("\n" + summary(results))
    bad = [name for name, result in results.items() if result["verdict"] in ("differs", "failed")]
    sys.exit(1 if bad else 0)


main()
