"""The official conformance suite: its sets, and its outcome as tables that two runs can be compared by."""

from __future__ import annotations

import collections
import difflib
import json
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from harness import HERE, LOOPBACK, NODE, PACKAGES, Unexpected, environment

CONFORMANCE = PACKAGES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
SET_SECONDS = 300
# The client scenarios of a set run all at once, each with a hop of its own when there is one.
CLIENT_MS = 60_000

# A requirement set is frozen and scored; a whole one is all that the suite has for a revision.
REQUIRED = {f"required-{revision}": ["--requirements", revision] for revision in ("2025-11-25", "2026-07-28")}
WHOLE = {
    f"all-{revision}": ["--suite", "all", "--spec-version", revision]
    for revision in ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
}
SETS = {"server": REQUIRED | WHOLE, "client": REQUIRED}

STAMP = re.compile(r"-\d{4}-\d\d-\d\dT[\d-]+Z$")
SUMMARY = re.compile(r"^([✓✗]) (\S+): \d+ passed, \d+ failed", re.MULTILINE)
UNSCORED = re.compile(r"^  [✓✗] (\S+) \([a-z-]+\)$", re.MULTILINE)

# set, scenario, check, how many-th check of that name, status
Row = tuple[str, str, str, str, str]


def run(role: str, target: Sequence[str], results: Path) -> list[Row]:
    """Runs every set of a role against `target` (`--url URL` or `--command COMMAND`)."""
    shutil.rmtree(results, ignore_errors=True)
    rows: list[Row] = []
    for label, arguments in SETS[role].items():
        directory = results / label
        directory.mkdir(parents=True)
        if role == "client":
            arguments = [*arguments, "--timeout", str(CLIENT_MS)]
        report = _run_set([role, *target, *arguments, "-o", str(directory)], results / f"{label}.log")
        _require_hops(directory)
        rows += _checks(label, directory)
        rows.append((label, "-", "scenarios", "1", _score(report)))
    return sorted(rows)


def _run_set(arguments: Sequence[str], log: Path) -> str:
    command = [str(NODE), *LOOPBACK, str(CONFORMANCE), *arguments]
    # Clients that the suite starts in turn get the same preload; none of them listens.
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=SET_SECONDS,
            cwd=HERE,
            env=environment(),
        )
    except subprocess.TimeoutExpired:
        raise Unexpected(f"the suite took over {SET_SECONDS} s: {' '.join(arguments)}") from None
    log.write_text(done.stdout)
    if not SUMMARY.search(done.stdout):
        tail = "\n  ".join(done.stdout.strip().splitlines()[-10:])
        raise Unexpected(f"the suite gave no summary ({log}):\n  {tail}")
    return done.stdout


def _require_hops(directory: Path) -> None:
    """A client's exit status is not in the checks; what `hop` had to say is in what the client printed."""
    for file in directory.rglob("stderr.txt"):
        for line in file.read_text(errors="replace").splitlines():
            if line.startswith("hop: "):
                raise Unexpected(f"{line} ({file.parent.name})")


def _checks(label: str, directory: Path) -> Iterable[Row]:
    for file in sorted(directory.rglob("checks.json")):
        scenario = STAMP.sub("", str(file.parent.relative_to(directory)))
        seen: collections.Counter[str] = collections.Counter()
        for check in json.loads(file.read_text()):
            seen[check["id"]] += 1
            yield label, scenario, check["id"], str(seen[check["id"]]), check["status"]


def _score(report: str) -> str:
    """`passed/all` over the scenarios that count."""
    unscored = set(UNSCORED.findall(report))
    counted = [mark for mark, name in SUMMARY.findall(report) if name not in unscored]
    return f"{counted.count('✓')}/{len(counted)}"


def scores(rows: Iterable[Row]) -> dict[str, str]:
    return {label: status for label, scenario, _, _, status in rows if scenario == "-"}


def tally(rows: Iterable[Row]) -> dict[str, int]:
    return collections.Counter(status for _, scenario, _, _, status in rows if scenario != "-")


def save(rows: Iterable[Row], file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join("\t".join(row) + "\n" for row in rows))


def load(file: Path) -> list[Row]:
    if not file.is_file():
        raise Unexpected(f"there is no table {file}")
    return [tuple(line.split("\t")) for line in file.read_text().splitlines()]


def differences(one: Iterable[Row], other: Iterable[Row], names: tuple[str, str]) -> list[str]:
    lines = [["\t".join(row) for row in rows] for rows in (one, other)]
    return list(difflib.unified_diff(*lines, *names, lineterm="", n=0))
