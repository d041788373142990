#!/usr/bin/env bash
# Everything that needs a GPU, and nothing else: characterizes the device, verifies and measures the shipped kernels in
# every variant, reads the memory traffic with ncu where it works, and validates the predictions.
#
#   benchmarks/gpu/run.sh [--again] [--seconds S] [--pack FILE.tar.gz] [FOLDER] [PART...]
#
# FOLDER: where results go, models/results/DEVICE-DATE by default. PART: machine, kernels (the deck's questions, streams
# and tiles), traffic, others (all other kernels), report; all by default, in this order, the most wanted first. A part
# whose files are there is not run again, so that an interrupted run goes on where it was; `--again` runs all of it anew.
# After S seconds (420) nothing more is begun. A kernel that fails is told with its reason, and one that hangs is left
# behind after two minutes; the rest goes on, in a new process where the device needs one. `--pack` keeps the whole folder
# in one file while it grows, and begins with what that file holds. `report` needs no GPU. The settings of the card are
# left as they are.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
begun=$(date +%s)
resumed=()
for _ in {1..30}; do
    status=0
    "${PYTHON:-python3}" -m benchmarks.gpu --begun "$begun" ${resumed[@]+"${resumed[@]}"} "$@" || status=$?
    [ "$status" -eq 75 ] || exit "$status"
    resumed=(--resumed)
done
exit 75
