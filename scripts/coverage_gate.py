"""Fails if coverage is too low: reads the report of `coverage json`, prints a table and each gap.

Lines: all of them, everywhere. Branches: the percentage that the table below sets per package.
"""

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# package -> percent of branches; packages not listed are checked by lines only
BRANCHES = {"core": 100, "store": 100, "tools": 100, "server": 99}


@dataclass
class Package:
    """Totals over the files of one package; `gaps` are the uncovered places, ready to print."""

    lines: int = 0
    lines_run: int = 0
    branches: int = 0
    branches_run: int = 0
    gaps: list[str] = field(default_factory=list)

    def add(self, path: str, measured: dict[str, Any]) -> None:
        summary = measured["summary"]
        self.lines += summary["num_statements"]
        self.lines_run += summary["covered_lines"]
        self.branches += summary["num_branches"]
        self.branches_run += summary["covered_branches"]
        self.gaps += [f"{path}:{line}: line never run" for line in measured["missing_lines"]]
        self.gaps += [
            f"{path}:{start}: branch never taken to {'the exit' if end < 0 else end}"
            for start, end in measured["missing_branches"]
            if start not in measured["missing_lines"]
        ]

    def passes(self, branches_wanted: int) -> bool:
        enough = self.branches_run * 100 >= self.branches * branches_wanted
        return self.lines_run == self.lines and enough


def main(report: str) -> int:
    packages = collect(json.loads(Path(report).read_bytes())["files"])
    if not packages:
        print("coverage: nothing was measured")
        return 1
    print(f"{'package':<10}{'lines':>18}{'branches':>18}   wanted")
    failed = [name for name, package in packages.items() if not show(name, package)]
    for package in packages.values():
        print(*package.gaps, sep="\n", end="\n" if package.gaps else "")
    print(f"coverage: too low in {', '.join(failed)}" if failed else "coverage: enough")
    return 1 if failed else 0


def collect(files: dict[str, dict[str, Any]]) -> dict[str, Package]:
    packages: dict[str, Package] = {}
    for path, measured in sorted(files.items()):
        inside = path.replace("\\", "/").rpartition("colibri/")[2]
        name = inside.split("/")[0] if "/" in inside else "(top)"
        packages.setdefault(name, Package()).add(path, measured)
    return packages


def show(name: str, package: Package) -> bool:
    wanted = BRANCHES.get(name, 0)
    ok = package.passes(wanted)
    lines = share(package.lines_run, package.lines)
    branches = share(package.branches_run, package.branches)
    verdict = "" if ok else "   TOO LOW"
    print(f"{name:<10}{lines:>18}{branches:>18}   100 / {wanted}{verdict}")
    return ok


def share(part: int, whole: int) -> str:
    percent = 100 * part / whole if whole else 100
    return f"{part}/{whole} {int(percent * 10) / 10:5.1f}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
