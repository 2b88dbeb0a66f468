#!/usr/bin/env python3
"""whole-images.py PICTURE: what examples/whole-images.sh has found out, as a table and as a picture.

Run in its folder. Needs nothing but Python.
"""
import csv
import json
import sys

GLYPHS = {  # as src/data/glyphs.cpp draws them
    "checks": lambda row, column: (row // 2 + column // 2) % 2 == 0,
    "diagonals": lambda row, column: (row + column) % 4 < 2,
    "dots": lambda row, column: (row + column) % 2 == 0,
    "stripes": lambda row, column: row // 2 % 2 == 0,
}
SIDE, GROUND, BRIGHT = 12, 128, 255


# --- what the runs say ---------------------------------------------------------------------------

def lines_of(run, kind):
    with open(f"{run}/metrics.jsonl") as file:
        return [line for line in map(json.loads, file) if line["kind"] == kind]


def cost(run):
    """Minutes of training, and MiB of tensors on the rank that needs most."""
    steps = lines_of(run, "step")
    return sum(step["seconds"] for step in steps) / 60, max(step["peak_bytes"] for step in steps) / 2**20


def pooled(file):
    """The share of images whose patches, by the mean of their probabilities, vote for the right class."""
    sums, labels = {}, {}
    with open(file, newline="") as table:
        rows = csv.DictReader(table)
        classes = [name for name in rows.fieldnames if name.startswith("p_")]
        for row in rows:
            image = row["name"].rpartition("-")[0]
            labels[image] = "p_" + row["label"]
            shares = sums.setdefault(image, dict.fromkeys(classes, 0.0))
            for name in classes:
                shares[name] += float(row[name])
    right = sum(max(shares, key=shares.get) == labels[image] for image, shares in sums.items())
    return right / len(sums)


def findings():
    """Name, what the model sees, ranks, accuracy on held-out images, minutes, MiB a rank."""
    whole, shrunk = (lines_of(run, "evaluation")[-1]["accuracy"] for run in ("whole", "shrunk"))
    return [("whole images", "1024 x 1024, on tiles", 4, whole, *cost("whole")),
            ("shrunk images", "256 x 256", 1, shrunk, *cost("shrunk")),
            ("patches, pooled", "16 of 256 x 256", 4, pooled("patches/predictions.csv"), *cost("patches"))]


# --- the picture ---------------------------------------------------------------------------------

def canvas(bright, size, at):
    """A glyph on its ground, as rows of grey values."""
    inside = range(at, at + SIDE)
    return [[BRIGHT if row in inside and column in inside and bright(row - at, column - at) else GROUND
             for column in range(size)] for row in range(size)]


def shrunk(pixels, factor):
    """By a triangle filter, as --fit resize does it."""
    size = len(pixels)
    weights = [factor - abs(i + 0.5 - factor) for i in range(2 * factor)]

    def along(line):
        return [sum(w * line[min(max(o * factor - factor // 2 + i, 0), size - 1)]
                    for i, w in enumerate(weights)) / sum(weights) for o in range(size // factor)]

    rows = [along(row) for row in pixels]
    return [list(row) for row in zip(*(along(column) for column in zip(*rows)))]


def squares(pixels, x, y, width):
    cell = width / len(pixels)
    ground = f'<rect x="{x}" y="{y}" width="{width}" height="{width}" fill="rgb({GROUND},{GROUND},{GROUND})"/>'
    return ground + "".join(
        f'<rect x="{x + c * cell:g}" y="{y + r * cell:g}" width="{cell:g}" height="{cell:g}" '
        f'fill="rgb({v:.0f},{v:.0f},{v:.0f})"/>'
        for r, row in enumerate(pixels) for c, v in enumerate(row) if round(v) != GROUND)


def text(x, y, words, size=14, weight="normal", colour="#1f2328", anchor="start"):
    return (f'<text x="{x}" y="{y}" font-size="{size}" font-weight="{weight}" fill="{colour}" '
            f'text-anchor="{anchor}">{words}</text>')


def glyph_panel(x, y, width=72, gap=18):
    parts = [text(x, y, "The class: which glyph is there most often", 15, "bold"),
             text(x, y + 28, "a glyph in the whole image"),
             text(x, y + 40 + width + 34, "the same in the shrunk image")]
    for i, (name, bright) in enumerate(GLYPHS.items()):
        left, pixels = x + i * (width + gap), canvas(bright, 24, 6)
        parts += [squares(pixels, left, y + 40, width),
                  squares(shrunk(pixels, 4), left, y + 52 + width + 34, width),
                  text(left + width / 2, y + 52 + 2 * width + 54, name, 12, colour="#59636e", anchor="middle")]
    return parts


def bar_panel(rows, x, y, width=400):
    parts, chance = [text(x, y, "Accuracy on images held out", 15, "bold")], x + width / len(GLYPHS)
    for i, (name, view, ranks, accuracy, minutes, memory) in enumerate(rows):
        top = y + 20 + i * 78
        where = f"each of {ranks} ranks" if ranks > 1 else "one rank"
        parts += [text(x, top + 14, f"{name}: {view}"),
                  f'<rect x="{x}" y="{top + 22}" width="{width}" height="22" fill="#eaeef2"/>',
                  f'<rect x="{x}" y="{top + 22}" width="{width * accuracy:.1f}" height="22" '
                  f'fill="{"#1a7f37" if i == 0 else "#8c959f"}"/>',
                  f'<line x1="{chance}" y1="{top + 20}" x2="{chance}" y2="{top + 46}" stroke="#cf222e" '
                  'stroke-width="2"/>',
                  text(x + width + 10, top + 39, f"{100 * accuracy:.1f} %", 15, "bold"),
                  text(x, top + 60, f"{minutes:.1f} minutes, {memory:,.0f} MiB on {where}", 12, colour="#59636e")]
    return parts + [text(x + width, y, "red: chance", 12, colour="#cf222e", anchor="end")]


def picture(rows):
    width, height = 920, 312
    parts = [f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8" fill="#ffffff" stroke="#d1d9e0"/>',
             *glyph_panel(24, 36), *bar_panel(rows, 424, 36)]
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" shape-rendering="crispEdges" font-family="Helvetica, Arial, sans-serif">\n' + "\n".join(parts) + "\n</svg>\n")


def main():
    rows = findings()
    print("| | a model sees | ranks | accuracy | minutes | MiB a rank |\n|---|---|---|---|---|---|")
    for name, view, ranks, accuracy, minutes, memory in rows:
        print(f"| {name} | {view} | {ranks} | {100 * accuracy:.1f} % | {minutes:.1f} | {memory:.0f} |")
    with open(sys.argv[1], "w") as file:
        file.write(picture(rows))


main()
