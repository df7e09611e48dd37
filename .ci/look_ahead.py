#!/usr/bin/env python3
"""A view depends only on what came before: a file that is cut after a call gives the same views
as the whole file up to there. Usage: look_ahead.py LONGHAUL WINDOW FILE..."""
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile


def views(longhaul, window, path):
    out = path.with_suffix(".views")
    command = [longhaul, "replay", path, "--window", window, "--views", out, "--meter", "neutral", "--json"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    for line in lines:
        del line["transcript"], line["prepare_us"]
    return lines


def main():
    longhaul, window, files = sys.argv[1], sys.argv[2], sys.argv[3:]
    compared = 0
    for file in files:
        with gzip.open(file, "rt") as stream:
            lines = stream.read().splitlines(keepends=True)
        calls = [n for n, line in enumerate(lines) if '"role"' in line and json.loads(line)["role"] == "assistant"]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "session.jsonl"
            path.write_text("".join(lines))
            whole = views(longhaul, window, path)
            for share in (0.3, 0.6, 0.9):
                path.write_text("".join(lines[: calls[int(len(calls) * share)] + 1]))
                part = views(longhaul, window, path)
                assert part == whole[: len(part)], f"{file}: other views when cut at {share}"
                compared += len(part)
    print(f"{compared} views of {len(files)} sessions, cut at three places: none looks ahead")


main()
