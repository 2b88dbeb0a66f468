#!/usr/bin/env python3
"""Draws how much memory a rank needs over the number of ranks, for images of 1024² to 16384².

    bench/memory-figure.py [--measure]

Lines are what `mpi4dl plan` says. Dots are the resident memory of the largest rank in real runs:
--measure makes those (one step each, at most 12 GiB of memory) and keeps them in
docs/images/memory-per-rank.json, from where later drawings take them. Writes
docs/images/memory-per-rank.svg. Needs nothing but Python and a build of mpi4dl.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
FIGURE = PROJECT / "docs/images/memory-per-rank.svg"
FIGURES = PROJECT / "docs/images/memory-per-rank.json"

MODEL = ["--model", "resnet", "--depth", "110", "--global-pool-head", "--batch-size", "1"]
SIZES = [1024, 2048, 4096, 8192, 16384]
SIDES = [1, 2, 3, 4, 6, 8, 12, 16, 23, 32]  # of the grid of tiles, a rank each
LIMITS = [16, 40, 80]  # GiB
MEASURED = [(1024, 1, False), (1024, 2, False), (1024, 3, False), (1024, 4, False),
            (2048, 2, True)]  # size, side, recompute
GIB = 2**30


def arguments(size, side, recompute):
    again = ["--recompute"] if recompute else []
    return [*MODEL, "--image-size", str(size), "--stages", f"{side}x{side}", *again]


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")


def planned(program, size, side, recompute=False):
    """GiB of the rank that needs the most."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "plan.json"
        run([program, "plan", *arguments(size, side, recompute), "--json", result])
        return json.loads(result.read_text())["bytes_per_rank"] / GIB


def measured(program, size, side, recompute):
    """GiB resident on the rank that needs the most, after one step."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "run"
        run(["mpirun", "-np", str(side * side), program, "train", "--app", "random",
             "--num-images", "1", *arguments(size, side, recompute), "--run-dir", result])
        return json.loads((result / "summary.json").read_text())["resident_bytes"] / GIB


def measure_all(program):
    points = []
    for size, side, recompute in MEASURED:
        point = {"image": size, "ranks": side * side, "recompute": recompute,
                 "planned_gib": round(planned(program, size, side, recompute), 3),
                 "measured_gib": round(measured(program, size, side, recompute), 3)}
        print(point, flush=True)
        points.append(point)
    FIGURES.write_text(json.dumps(points, indent=2) + "\n")


class Axes:
    """Both axes are logarithmic, so that a line of slope -1 is memory shared out evenly."""

    left, right, top, bottom = 78, 736, 92, 512
    ranks = (1, 1024)
    gib = (0.125, 4096)

    def x(self, ranks):
        first, last = self.ranks
        share = math.log(ranks / first) / math.log(last / first)
        return self.left + 16 + share * (self.right - self.left - 32)

    def y(self, gib):
        low, high = self.gib
        return self.bottom - math.log(gib / low) / math.log(high / low) * (self.bottom - self.top)


# By size; light, dark.
COLOURS = [("#1b8ea6", "#63d2e6"), ("#2473b3", "#6cb6f5"), ("#3557b0", "#8ea8ff"),
           ("#573d9c", "#b79bf7"), ("#7a2a80", "#e08be0")]


def coloured(dark):
    """A rule for each colour, for programs that know no variables of CSS, such as librsvg."""
    rules = []
    for number, pair in enumerate(COLOURS):
        colour = pair[dark]
        rules.append(f".line.s{number} {{ stroke: {colour} }} "
                     f".name.s{number}, .dot.s{number} {{ fill: {colour} }}")
    return "\n".join(f"  {rule}" for rule in rules)


STYLE = f"""
  text {{ font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #24292f }}
  .card {{ fill: #ffffff; stroke: #d0d7de }}
  .title {{ font-size: 18px; font-weight: 600 }}
  .quiet {{ fill: #57606a }}
  .grid {{ stroke: #eaeef2 }}
  .limit {{ stroke: #8c6d1f; stroke-dasharray: 2 4 }}
  .limit-name {{ fill: #7d5f14; font-size: 12px }}
  .line {{ fill: none; stroke-width: 2.5; stroke-linejoin: round }}
  .again {{ stroke-width: 1.5; stroke-dasharray: 6 4 }}
  .name {{ font-weight: 600 }}
  .dot {{ stroke: #ffffff; stroke-width: 1.5 }}
  .key {{ stroke: #57606a }} .key-dot {{ fill: #57606a }}
{coloured(dark=False)}
  @media (prefers-color-scheme: dark) {{
    text {{ fill: #e6edf3 }} .card {{ fill: #0d1117; stroke: #30363d }} .quiet {{ fill: #9198a1 }}
    .grid {{ stroke: #21262d }} .limit {{ stroke: #c9a227 }} .limit-name {{ fill: #d8b74a }}
    .dot {{ stroke: #0d1117 }} .key {{ stroke: #9198a1 }} .key-dot {{ fill: #9198a1 }}
{coloured(dark=True)}
  }}
"""


def text(x, y, words, kind="", anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{words}</text>'


def rule(x1, y1, x2, y2, kind):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def polyline(points, kind):
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{places}" class="{kind}"/>'


def frame(axes):
    parts = [text(24, 36, "Memory that a rank needs to train ResNet-110", "title"),
             text(24, 58, "one image a step, float32, SGD with momentum; everything is counted: "
                          "parameters, activations, halos, the program", "quiet")]
    for power in range(-2, 13, 2):
        gib = 2.0**power
        name = f"{gib:g} GiB"
        parts += [rule(axes.left, axes.y(gib), axes.right, axes.y(gib), "grid"),
                  text(axes.left - 8, axes.y(gib) + 4, name, "quiet", "end")]
    for power in range(0, 11, 2):
        ranks = 2**power
        parts += [rule(axes.x(ranks), axes.top, axes.x(ranks), axes.bottom, "grid"),
                  text(axes.x(ranks), axes.bottom + 20, ranks, "quiet", "middle")]
    parts.append(text((axes.left + axes.right) / 2, axes.bottom + 42,
                      "ranks, each with one tile of the image", "quiet", "middle"))
    for gib in LIMITS:
        parts += [rule(axes.left, axes.y(gib), axes.right, axes.y(gib), "limit"),
                  text(axes.right + 6, axes.y(gib) + 4, f"{gib} GiB", "limit-name")]
    parts.append(text(axes.right + 6, axes.y(LIMITS[-1]) - 14, "of a device", "limit-name"))
    return parts


def key(axes, with_dots):
    x, y = axes.right - 212, axes.top + 18
    lines = [polyline([(x, y), (x + 34, y)], "line key"), text(x + 44, y + 4, "mpi4dl plan"),
             polyline([(x, y + 22), (x + 34, y + 22)], "line again key"),
             text(x + 44, y + 26, "the same with --recompute")]
    dots = [f'<circle cx="{x + 17}" cy="{y + 44}" r="5.5" class="dot key-dot"/>',
            text(x + 44, y + 48, "measured in a run")]
    return lines + (dots if with_dots else [])


def draw(lines, points):
    axes = Axes()
    parts = frame(axes)
    for number, size in enumerate(SIZES):
        for recompute in (True, False):
            places = [(axes.x(ranks), axes.y(gib)) for ranks, gib in lines[size, recompute]]
            parts.append(polyline(places, f"line{' again' if recompute else ''} s{number}"))
        x, y = axes.x(1), axes.y(lines[size, False][0][1])
        parts.append(text(x + 10, y - 7, f"{size}² pixels", f"name s{number}"))
    for point in points:
        parts.append(f'<circle cx="{axes.x(point["ranks"]):.1f}" '
                     f'cy="{axes.y(point["measured_gib"]):.1f}" r="5.5" '
                     f'class="dot s{SIZES.index(point["image"])}"/>')
    parts += key(axes, bool(points))
    body = "\n".join(parts)
    FIGURE.write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 820 576" width="820" height="576" '
        'role="img" aria-label="Memory a rank needs over the number of ranks">\n'
        f'<style>{STYLE}</style>\n<rect x="0.5" y="0.5" width="819" height="575" rx="8" '
        f'class="card"/>\n{body}\n</svg>\n', encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="run the points that fit here")
    parser.add_argument("--mpi4dl", default=os.environ.get(
        "MPI4DL", PROJECT / "build/release/bin/mpi4dl"), help="the program")
    flags = parser.parse_args()
    if flags.measure:
        measure_all(flags.mpi4dl)
    lines = {}
    for size in SIZES:
        for recompute in (False, True):
            lines[size, recompute] = [(side * side, planned(flags.mpi4dl, size, side, recompute))
                                      for side in SIDES]
            print(f"{size}²{' --recompute' if recompute else ''}:",
                  ", ".join(f"{ranks}: {gib:.3g}" for ranks, gib in lines[size, recompute]),
                  flush=True)
    points = json.loads(FIGURES.read_text()) if FIGURES.exists() else []
    draw(lines, points)


if __name__ == "__main__":
    main()
