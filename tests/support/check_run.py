"""Looks at what a run and an evaluation wrote, by code of its own.

check_run.py run FOLDER STEPS EVALUATIONS   the files of a run directory agree with each other
check_run.py predictions CSV JSON           metrics computed from the CSV file are those of evaluate
check_run.py same JSON JSON...              results of evaluate, and summaries, agree to 1e-9
"""
import csv, glob, json, math, struct, sys


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def check_crc(data, found):
    crc = crc32c(data)
    assert ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF == struct.unpack("<I", found)[0]


def fields(message):
    """(number, value) of a protocol buffer message: ints, or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        size = {1: lambda: 8, 5: lambda: 4, 2: varint}[key & 7]()
        assert at + size <= len(message)
        yield key >> 3, message[at:at + size]
        at += size


def events(folder):
    """All events of all files, in the order of their names."""
    for name in sorted(glob.glob(folder + "/events.out.tfevents.*")):
        data = open(name, "rb").read()
        at = 0
        while at < len(data):
            length = struct.unpack_from("<Q", data, at)[0]
            check_crc(data[at:at + 8], data[at + 8:at + 12])
            event = data[at + 12:at + 12 + length]
            check_crc(event, data[at + 12 + length:at + 16 + length])
            at += 16 + length
            yield dict(fields(event))


def scalars(folder):
    """{tag: {step: number}}; a session that starts at a step forgets what came later."""
    found = {}
    for number, event in enumerate(events(folder)):
        if number == 0:
            assert event[3] == b"brain.Event:2"
        if 7 in event and dict(fields(event[7])).get(1) == 1:
            for values in found.values():
                for step in [step for step in values if step >= event[2]]:
                    del values[step]
        for field, value in fields(event.get(5, b"")):
            value = dict(fields(value))
            found.setdefault(value[1].decode(), {})[event[2]] = struct.unpack("<f", value[2])[0]
    return found


def single(number):
    return struct.unpack("<f", struct.pack("<f", number))[0]


def check_run(folder, steps, evaluations):
    config = json.load(open(folder + "/config.json"))
    assert config["command"] == "train" and config["version"] and config["options"]["model"]
    lines = [json.loads(line) for line in open(folder + "/metrics.jsonl")]
    found = {kind: [line for line in lines if line["kind"] == kind] for kind in ("step", "evaluation")}
    assert [line["total_step"] for line in found["step"]] == list(range(1, steps + 1)), lines
    assert len(found["evaluation"]) == evaluations, lines
    board = scalars(folder)
    for kind, prefix in (("step", "train/"), ("evaluation", "evaluation/")):
        for key in ("loss", "accuracy"):
            if found[kind]:
                expected = {line["total_step"]: single(line[key]) for line in found[kind]}
                assert board[prefix + key] == expected, (prefix + key, board, expected)
    summary = json.load(open(folder + "/summary.json"))
    last = [line for line in found["step"] if line["epoch"] == found["step"][-1]["epoch"]]
    assert math.isclose(summary["accuracy"], sum(l["accuracy"] for l in last) / len(last))
    assert summary["images_per_second"]["median"] > 0 and summary["resident_bytes"] > 0
    if evaluations:
        assert summary["evaluation"]["loss"] == found["evaluation"][-1]["loss"]
    print("final loss", summary["loss"])


def check_predictions(table, result):
    rows = list(csv.DictReader(open(table)))
    expected = json.load(open(result))
    classes = len(expected["confusion"])
    assert len(rows) == expected["images"] and len({row["name"] for row in rows}) == len(rows)
    labels = [int(row["label"]) for row in rows]
    shares = [[float(row["p%d" % i]) for i in range(classes)] for row in rows]
    confusion = [[0] * classes for _ in range(classes)]
    for row, label, share in zip(rows, labels, shares):
        assert abs(sum(share) - 1) < 1e-12 and int(row["predicted"]) == share.index(max(share))
        confusion[label][int(row["predicted"])] += 1
    assert confusion == expected["confusion"]
    loss = -sum(math.log(share[label]) for share, label in zip(shares, labels)) / len(rows)
    assert abs(loss - expected["loss"]) < 1e-12
    for i in range(classes):
        inside = [share[i] for share, label in zip(shares, labels) if label == i]
        outside = [share[i] for share, label in zip(shares, labels) if label != i]
        won = sum((a > b) + 0.5 * (a == b) for a in inside for b in outside)
        area = won / len(inside) / len(outside) if inside and outside else None
        assert area == expected["auc"][i] or abs(area - expected["auc"][i]) < 1e-12


def check_same(*names):
    results = [json.load(open(name)) for name in names]
    results = [result.get("evaluation", result) for result in results]
    for result in results[1:]:
        assert result["confusion"] == results[0]["confusion"]
        for key in ("loss", "accuracy", "mean_auc"):
            assert abs(result[key] - results[0][key]) <= 1e-9 * abs(results[0][key]), (key, results)
    largest = max(abs(r["loss"] / results[0]["loss"] - 1) for r in results)
    print(len(results), "results agree, largest difference of the loss", largest)


if sys.argv[1] == "run":
    check_run(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
elif sys.argv[1] == "predictions":
    check_predictions(*sys.argv[2:])
else:
    check_same(*sys.argv[2:])
