"""Whether decisions by the true price are safe, and the best there are: prices.py LONGHAUL FILES...

Each session is replayed at each true price, decided by that price and by each of the others. Decided by the true price, the
losses are within the bars, and the bill is no larger than decided by any other price that gives the same: losses within the
same bars, and as much memory. Other decisions are shown and not compared: a lower bill is no merit where single sessions
lose too much, or where less of what the work needs is in view.
"""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product

longhaul, files = sys.argv[1], sys.argv[2:]
WINDOWS = ["64000", "200000"]
READS = ["0.1", "0.05", "0.025"]


class Bill:
    """What all sessions cost, billed at one price and decided by another."""

    def __init__(self, window, read, decide):
        flags = ["--window", window, "--prices", f"{read},1.25", "--decide-at", f"{decide},1.25", "--meter", "neutral", "--json"]
        said = subprocess.run([longhaul, "replay", *files, *flags], check=True, capture_output=True, text=True).stdout
        rows = [json.loads(line) for line in said.splitlines()]
        whole = sum(row["cost_full"] for row in rows)
        more = [row["cost_sent"] / row["cost_full"] - 1 for row in rows if row["cost_full"]]
        self.sessions = len(rows)
        self.cost = sum(row["cost_sent"] for row in rows) / whole
        self.worst = max(more)
        self.over_2 = sum(share > 0.02 for share in more)
        self.losses = sum(max(0, row["cost_sent"] - row["cost_full"]) for row in rows) / whole
        needs = [row for row in rows if row["in_line"] is not None]
        self.in_line = sum(row["in_line"] * row["calls"] for row in needs) / sum(row["calls"] for row in needs)

    def keeps_the_bars(self):
        """No session over 5 % more expensive than sending everything, one in fifty over 2 %, all losses 0.1 % of the bill."""
        return self.worst <= 0.05 and self.over_2 * 50 <= self.sessions and self.losses < 0.001

    def remembers_as_much(self, own):
        """Of the lines that calls need, as large a share in view, to half a point."""
        return self.in_line >= own.in_line - 0.005

    def __str__(self):
        return (
            f"{self.cost:.2%}, worst session {self.worst:+.1%}, {self.over_2} over 2 %, losses {self.losses:.3%}, "
            f"in line {self.in_line:.1%}"
        )


cases = list(product(WINDOWS, READS, READS))
with ThreadPoolExecutor(os.cpu_count()) as pool:
    bills = dict(zip(cases, pool.map(lambda case: Bill(*case), cases)))
wrong, compared = [], 0
for (window, read, decide), bill in bills.items():
    own, keeps = bills[window, read, read], bill.keeps_the_bars()
    remembers = bill.remembers_as_much(own)
    why_not = "" if keeps and remembers else " (remembers less)" if keeps else " (beyond the bars)"
    print(f"window {window}, read {read}, decided by {decide}: {bill}{why_not}")
    if decide == read and not keeps:
        wrong.append(f"window {window}, read {read}: {bill} is beyond the bars")
    if decide != read and keeps and remembers:
        compared += 1
        if own.cost > bill.cost:
            wrong.append(f"window {window}, read {read}: {own.cost:.2%} by its own price, {bill.cost:.2%} by that of {decide}")
print(compared, "decisions by another price keep to the bars, remember as much, and were compared")
if not compared:
    wrong.append("no decision by another price was compared")
sys.exit("\n".join(wrong) or 0)
