"""`python -m benchmarks [PART...]`: runs the benchmarks; all of them together write a report."""

from __future__ import annotations

import argparse
import os
from math import inf
from pathlib import Path

from benchmarks import (
    block_shapes,
    compare,
    derivations,
    every_cache,
    grading,
    layer_conditions,
    peers,
    report,
    scaling,
    simulation,
    startup,
    sweeping,
)
from roofdsl.lang.diagnostics import CommandError, InputError

PARTS = (
    "derivations", "every-cache", "scaling", "startup", "peers", "layers", "simulation", "sweeps", "grading", "shapes",
)  # fmt: skip
APART = (
    "validation", "trust", "misses", "plateaus", "published", "incore", "energy", "floors", "sparse",
    "answers",
)  # fmt: skip
"""Parts that run only if they are named; some of them write a report of their own."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="PART",
        help=f"{', '.join(PARTS)} (default: these, and a report), {', '.join(APART)}",
    )
    parser.add_argument("--repeats", type=int, default=derivations.REPEATS, help="counted runs of a derivation")
    parser.add_argument("--runs", type=int, default=startup.RUNS, help="counted runs of a command")
    parser.add_argument(
        "--kernel",
        action="append",
        help="derivations, every-cache, validation, misses, incore, sparse, answers: only this kernel (repeatable)",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=inf,
        help="validation, trust, misses, plateaus, incore, floors, sparse, answers: begin no more kernels after it",
    )
    parser.add_argument(
        "--keep",
        type=Path,
        help="misses, plateaus: results go to this file at once, validation: to this folder; those in it are taken up; "
        "incore: what is measured of the core goes to this file",
    )
    sets = parser.add_mutually_exclusive_group()
    for name, what in (("polybench", "PolyBench at MEDIUM"), ("blind", "the kernels of benchmarks/blind")):
        help_text = f"validation: {what} instead of the shipped kernels"
        sets.add_argument(f"--{name}", dest="of", action="store_const", const=name, default="shipped", help=help_text)
    sets.add_argument(
        "--again",
        type=Path,
        metavar="FOLDER",
        help="validation: compare what was measured into this folder with today's predictions; with --keep, the report "
        "goes there",
    )
    parser.add_argument(
        "--math",
        action="append",
        choices=("relaxed", "strict"),
        help="validation: what compilers may do (default relaxed; repeatable: every run with each)",
    )
    parser.add_argument(
        "--machine",
        type=Path,
        metavar="FILE",
        help="validation, sparse: a characterization of this computer made before",
    )
    parser.add_argument("--random-kernels", type=int, default=1000, help="trust, plateaus: compared with brute force")
    parser.add_argument("--seed", type=int, default=100_000, help="trust, plateaus: of the first of them")
    parser.add_argument("--operators", type=Path, metavar="CSV", help="published: measured times of operators on GPUs")
    parser.add_argument("--streams", type=Path, metavar="CSV", help="published: measured bandwidths by occupancy")
    parser.add_argument("--points", type=Path, metavar="CSV", help="energy: measured powers of GPUs by intensity")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="published: draw both into this file")
    parser.add_argument("--json", action="store_true", help="published: machine-readable output")
    parser.add_argument("--imports", action="store_true", help="with startup: the dearest imports of predict")
    options = parser.parse_args()
    known = (*PARTS, *APART)
    unknown = [p for p in options.parts if p not in known]
    if unknown:
        parser.error(f"no part is named {unknown[0]}; there are {', '.join(known)}")
    parts = options.parts or PARTS
    before = os.getloadavg()[0]
    sections = []
    if "startup" in parts:
        sections.append(startup.section(startup.measure_all(options.runs)))
        sections.append(startup.kept_section(startup.measure_kept()))
        if options.imports:
            for module, own in startup.dearest_imports("roofdsl predict gemv"):
                print(f"{own:8.1f} ms  {module}")
    if "derivations" in parts:
        sections.append(derivations.section(derivations.measure_all(options.kernel, options.repeats, tell=True)))
    if "every-cache" in parts:
        sections.append(every_cache.section(every_cache.measure_all(options.kernel, options.repeats)))
    if "scaling" in parts:
        grown = list(scaling.measure_all())
        sections.append(scaling.section(grown))
        if not options.parts and not options.kernel:  # as the report
            report.REPORTS.mkdir(parents=True, exist_ok=True)
            scaling.draw(grown, report.REPORTS / "scaling.svg")
            sections.append("![Seconds against the size of the kernel](scaling.svg)")
    if "simulation" in parts:
        sections.append(simulation.section(options.repeats))
    if "layers" in parts:
        sections.append(layer_conditions.section())
    if "sweeps" in parts:
        sections.append(sweeping.section(options.repeats))
    if "grading" in parts:
        sections.append(grading.section())
    if "shapes" in parts:
        sections.append(block_shapes.section())
    if "peers" in parts:
        sections.append(compare.section(peers.ask_all(), options.repeats))
    if "validation" in parts:
        try:
            path = report.write_validation(_validation(options), before)
        except (CommandError, InputError) as error:
            parser.exit(2 if isinstance(error, CommandError) else 1, f"{error}\n")
        print(f"wrote {path}")
    if "trust" in parts:
        from benchmarks import trust

        print(f"wrote {trust.write(options.random_kernels, options.seed, options.seconds, before)}")
    if "plateaus" in parts:
        from benchmarks import plateaus

        searched = plateaus.search(options.random_kernels, options.seed, options.seconds, options.keep)
        print(f"wrote {plateaus.write(searched, before)}")
    if "published" in parts:
        from benchmarks import published

        try:
            print(published.answer(options.operators, options.streams, options.figure, json=options.json))
        except CommandError as error:
            parser.exit(2, f"{error}\n")
    if "energy" in parts:
        from benchmarks import energy

        try:
            print(energy.answer(options.points))
        except CommandError as error:
            parser.exit(2, f"{error}\n")
    if "floors" in parts:
        from benchmarks import floor_shares, floors

        print(floors.section(floors.run(options.seconds / 2)))
        print(f"\n{floor_shares.section(floor_shares.measure_all(options.seconds / 2))}")
    if "answers" in parts:
        from benchmarks import answers

        print(answers.section(answers.measure_all(options.kernel, options.seconds)))
    if "incore" in parts:
        from benchmarks import incore

        print(incore.run(options.kernel or (), options.seconds, options.keep))
    if "sparse" in parts:
        from benchmarks import sparse

        try:
            print(sparse.run(options.machine, options.kernel or (), options.seconds))
        except (CommandError, InputError) as error:
            parser.exit(2 if isinstance(error, CommandError) else 1, f"{error}\n")
    if "misses" in parts:
        from benchmarks import polybench_misses

        print(f"wrote {polybench_misses.write(report.REPORTS, options.kernel, before, options.keep, options.seconds)}")
    if not sections:
        return
    if options.parts or options.kernel:
        print("\n\n".join(sections))
    else:
        print(f"wrote {report.write(sections, (before, os.getloadavg()[0]))}")


def _validation(options: argparse.Namespace) -> report.Validation:
    return report.Validation(
        options.kernel or (),
        options.of,
        tuple(dict.fromkeys(options.math or ("relaxed",))),
        options.seconds,
        options.keep,
        options.machine,
        options.again,
    )


if __name__ == "__main__":
    main()
