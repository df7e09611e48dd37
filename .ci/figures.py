"""Whether figures on the pages are what the commands say: figures.py LONGHAUL CORPUS [--write]

Tables and sentences with figures of `bench` (README.md, docs/measuring.md, profiles.md, default-profile.md, compare.md), and
README.md's report. A figure of bench may be off by a quarter of a point, one of report by a hundredth: small changes of
the engine need no new pages. With --write the figures of bench are put on the pages; the report is to be looked at by
a person, who chose its lines.

What the next steps need must be in view: near has a bar, and a floor for each kind of message a need was last seen in
(near_floors.json, which only a person changes). Every file that a session changed is named.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from glob import glob
from pathlib import Path

longhaul, corpus, write = sys.argv[1], sys.argv[2], "--write" in sys.argv[3:]
root = Path(__file__).parent.parent
wrong, compared = [], 0


def run(*arguments):
    with tempfile.TemporaryDirectory() as home:
        environment = {"HOME": home, "PATH": os.environ["PATH"], "TZ": "UTC"}
        return subprocess.run([longhaul, *arguments], env=environment, check=True, capture_output=True, text=True).stdout


def bench(window, folder=corpus, *more):
    said = run("bench", *sorted(glob(f"{folder}/*.jsonl.gz")), "--window", window, "--json", *more)
    return {row["policy"]: row for row in map(json.loads, said.splitlines()) if row["agent"] == "all"}


LARGE, SMALL = bench("200000"), bench("64000")
# Newer sessions, which stand beside the corpus: `corpus2`, `corpus3`.
OTHERS = {
    (name, size): bench(f"{size}000", f"{corpus}/../{name}")
    for name in ["corpus2", "corpus3"]
    for size in ["200", "64"]
    if Path(f"{corpus}/../{name}").is_dir()
}
BY_CORPUS = {("corpus", "200"): LARGE, ("corpus", "64"): SMALL, **OTHERS}
# What a need was last seen in, in the order of the table; and the least share of such needs in view, in percent.
KINDS = ["read", "search", "command", "script", "change", "other", "said"]
FLOORS = json.loads((Path(__file__).parent / "near_floors.json").read_text())
# With a model that binds thinking.
BOUND = {
    (name, size): bench(f"{size}000", f"{corpus}/../{name}", "--bound")["longhaul"]
    for name in ["corpus", "corpus2", "corpus3"]
    for size in ["200", "64"]
    if Path(f"{corpus}/../{name}").is_dir()
}


def settled(page, where, text, value, digits=1):
    """What stands on the page, or what is to stand there."""
    global compared
    compared += 1
    found = f"{100 * value:.{digits}f}"
    found = "100" if float(found) == 100 else found
    if abs(float(text) - 100 * value) > 0.25:
        wrong.append(f"{page}: {where}: {text}, and bench says {found}")
    return found if write else text


def cell(page, name, cell, row, field, digits=1):
    """A cell of a table: its figure, with the emphasis that it has."""
    number = re.search(r"\d+(?:\.\d+)?", cell)
    if number is None or row is None:
        return cell
    return cell.replace(number[0], settled(page, f"{name}, {field}", number[0], row[field], digits))


FOUR = ["cost", "in_line", "retention", "near"]
EIGHT = [(LARGE, field) for field in FOUR] + [(SMALL, field) for field in FOUR]
# By page and the number of cells behind the first: what stands in each of them.
TABLES = {
    ("docs/measuring.md", 8): EIGHT,
    ("docs/profiles.md", 8): EIGHT,
    ("README.md", 4): [(LARGE, "cost"), (LARGE, "in_line"), (SMALL, "cost"), (SMALL, "in_line")],
}
NAMES = {"the agents' own compaction, as recorded": "recorded agent"}
LONGHAUL, RECORDED, CLEAR = LARGE["longhaul"], LARGE["recorded agent"], LARGE["clear over 80%, keep 3"]
# Sentences: each `#` is a figure.
SENTENCES = [
    ("README.md", "it pays # % of what sending everything costs, and # % of the lines", [LONGHAUL["cost"], LONGHAUL["in_line"]]),
    ("README.md", "own compaction paid # % for # %", [RECORDED["cost"], RECORDED["in_line"]]),
    ("README.md", "keeps more bare names (# % against # %)", [CLEAR["retention"], LONGHAUL["retention"]]),
    ("README.md", "a window of 64,000 (# %)", [SMALL["mini"]["cost"]]),
    ("README.md", "we do at # % of the calls", [LONGHAUL["breaks"]]),
    ("docs/compare.md", "| # %, # % (52 other sessions", [LONGHAUL["cost"], LONGHAUL["in_line"]]),
    ("docs/compare.md", "73.1 %, 96.0 % | # %, # % |", [CLEAR["cost"], CLEAR["in_line"]]),
    ("docs/compare.md", "at # % of the calls, none by a restart", [LONGHAUL["breaks"]]),
    ("docs/compare.md", "this paid # % with # % of the needed lines", [RECORDED["cost"], RECORDED["in_line"]]),
    ("docs/compare.md", "with Longhaul # % with # %", [LONGHAUL["cost"], LONGHAUL["in_line"]]),
]

for page in ["README.md", *(f"docs/{name}.md" for name in ["measuring", "profiles", "default-profile", "compare"])]:
    old = (root / page).read_text()
    lines = old.splitlines()
    for at, line in enumerate(lines):
        cells = line.strip("|").split("|") if line.startswith("| ") else [""]
        name = cells[0].strip().strip("*")
        dial = re.fullmatch(r"`(\w+)`, (200|64)k", name)
        other = re.fullmatch(r"(corpus[23]), (200|64)k", name)
        if dial or other:
            of, size, profile = ("corpus", dial[2], dial[1]) if dial else (other[1], other[2], "longhaul")
            row = BY_CORPUS.get((of, size), {}).get(profile)
            fields = ["cost", "real_cost", "in_line", "retention", "near", "breaks"]
            for number, field in enumerate(fields, 1):
                cells[number] = cell(page, name, cells[number], row, field, 2 if field == "near" else 1)
        elif kinds := re.fullmatch(r"(corpus[23]?), (200|64)k, `(longhaul|safe)`", name):
            row = BY_CORPUS.get((kinds[1], kinds[2]), {}).get(kinds[3])
            figures = row and {kind: share for kind, (_, share) in row["near_by_origin"].items()} | {"near": row["near"]}
            for number, kind in enumerate(["near", *KINDS], 1):
                cells[number] = cell(page, name, cells[number], figures, kind, 2)
        elif bound := re.fullmatch(r"(corpus[23]?), (200|64)k, (free|bound)", name):
            of, size, way = bound.groups()
            row = BOUND.get((of, size)) if way == "bound" else BY_CORPUS.get((of, size), {}).get("longhaul")
            for number, field in enumerate(["cost", "in_line", "retention", "near", "breaks", "thinking_kept"], 1):
                cells[number] = cell(page, name, cells[number], row, field, 2 if field == "near" else 1)
        elif fields := TABLES.get((page, len(cells) - 1)):
            for number, (rows, field) in enumerate(fields, 1):
                cells[number] = cell(page, name, cells[number], rows.get(NAMES.get(name, name)), field)
        else:
            continue
        lines[at] = "|" + "|".join(cells) + "|"
    new = "\n".join(lines) + "\n"
    for _, sentence, values in (entry for entry in SENTENCES if entry[0] == page):
        pattern = re.escape(sentence).replace(r"\ ", r"\s+").replace(r"\#", r"(\d+(?:\.\d+)?)")
        found = re.search(pattern, new)
        if found is None:
            wrong.append(f"{page} does not say: {sentence}")
            continue
        text, end = "", found.start()
        for number, value in enumerate(values, 1):
            text += new[end : found.start(number)] + settled(page, sentence, found[number], value)
            end = found.end(number)
        new = new[: found.start()] + text + new[end:]
    if write and new != old:
        (root / page).write_text(new)
        print(page, "was written")
assert compared >= 180, compared

# Whole results: what the next steps need is in view, of each kind, and so is the name of every changed file.
LEAST_NEAR = {"200": 0.999, "64": 0.996}
missed, floors = [], 0
for (name, size), rows in BY_CORPUS.items():
    for profile in ["longhaul", "safe"]:
        row, where = rows[profile], f"{profile} on {name} at {size}k"
        print(f"{where}: near {100 * row['near']:.3f} %, files named {100 * row['files_named']:.3f} %")
        if row["near"] < LEAST_NEAR[size]:
            missed.append(f"{where}: near {100 * row['near']:.3f} %, less than {100 * LEAST_NEAR[size]:.1f}")
        if row["files_named"] < 1:
            missed.append(f"{where}: {100 * row['files_named']:.3f} % of the changed files are named")
        for kind, least in FLOORS[f"{name} {size}k"].items():
            count, share = row["near_by_origin"].get(kind, (0, 0))
            floors += 1
            if 100 * share < least:
                missed.append(f"{where}: near of {kind} {100 * share:.3f} % of {count}, less than {least}")
print(floors, "floors of near compared")
assert len(BY_CORPUS) == 6 and floors >= 70, (len(BY_CORPUS), floors)

shown = (root / "README.md").read_text()
shown = re.search(r"\n    11 sessions.*?\n\nA quarter", shown, re.S).group(0).splitlines()
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def parts(line):
    """A line without its numbers and its spaces, and the numbers."""
    numbers = [float(number.replace(",", "")) for number in NUMBER.findall(line)]
    return " ".join(NUMBER.sub("0", line).replace("█", "").split()), numbers


def close(a, b):
    return len(a) == len(b) and all(abs(x - y) <= max(0.5, 0.01 * abs(y)) for x, y in zip(a, b))


said = [parts(line) for line in run("report", f"{corpus}/native").splitlines()]
lines = [line for line in shown if line.startswith("    ")]
unsaid = []
for line in lines:
    words, numbers = parts(line)
    if not any(words == other and close(numbers, others) for other, others in said):
        unsaid.append(f"README.md: `{line.strip()}` is not in what report says")
assert len(lines) >= 18, lines

print(compared, "figures of bench and", len(lines), "lines of report compared")
left = missed + unsaid + ([] if write else wrong)
sys.exit("\n".join(left) or 0)
