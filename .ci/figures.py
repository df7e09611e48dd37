"""Whether figures on the pages are what the commands say: figures.py LONGHAUL CORPUS

docs/measuring.md against `bench` at both windows (other pages are compared with it by a test), and README.md's report
against `report`. A figure of bench may be off by a quarter of a point, one of report by a hundredth: small changes of the
engine need no new pages.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from glob import glob
from pathlib import Path

longhaul, corpus = sys.argv[1], sys.argv[2]
root = Path(__file__).parent.parent
wrong = []


def run(*arguments):
    with tempfile.TemporaryDirectory() as home:
        environment = {"HOME": home, "PATH": os.environ["PATH"], "TZ": "UTC"}
        return subprocess.run([longhaul, *arguments], env=environment, check=True, capture_output=True, text=True).stdout


page = (root / "docs/measuring.md").read_text()
table = page[page.index("## Figures") :]
compared = 0
for offset, window in [(0, "200000"), (4, "64000")]:
    said = run("bench", *sorted(glob(f"{corpus}/*.jsonl.gz")), "--window", window, "--json")
    rows = {row["policy"]: row for row in map(json.loads, said.splitlines()) if row["agent"] == "all"}
    for line in table.splitlines():
        cells = [cell.strip().replace("*", "") for cell in line.strip("|").split("|")]
        row = rows.get(cells[0])
        if row is None or len(cells) != 9:
            continue
        for cell, field in zip(cells[1 + offset : 5 + offset], ["cost", "in_line", "retention", "near"]):
            if cell == "–":
                continue
            compared += 1
            if abs(float(cell) - 100 * row[field]) > 0.25:
                wrong.append(f"docs/measuring.md: {cells[0]} @{window} {field}: {cell}, and bench says {100 * row[field]:.1f}")
assert compared >= 90, compared

shown = (root / "README.md").read_text()
shown = re.search(r"\n    11 sessions.*?\n\nA quarter", shown, re.S).group(0).splitlines()
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def parts(line):
    """A line without its numbers and its spaces, and the numbers."""
    numbers = [float(number.replace(",", "")) for number in NUMBER.findall(line)]
    return " ".join(NUMBER.sub("0", line).split()).replace("█", ""), numbers


def close(a, b):
    return len(a) == len(b) and all(abs(x - y) <= max(0.5, 0.01 * abs(y)) for x, y in zip(a, b))


said = [parts(line) for line in run("report", f"{corpus}/native").splitlines()]
lines = [line for line in shown if line.startswith("    ")]
for line in lines:
    words, numbers = parts(line)
    if not any(words == other and close(numbers, others) for other, others in said):
        wrong.append(f"README.md: `{line.strip()}` is not in what report says")
assert len(lines) >= 18, lines

print(compared, "figures of bench and", len(lines), "lines of report compared")
sys.exit("\n".join(wrong) if wrong else 0)
