#!/usr/bin/env bash
# Everything that needs a GPU, and nothing else: characterizes the device, verifies and measures the shipped kernels in
# every variant, reads the memory traffic with ncu and checks all accesses where these tools are there, and validates
# the predictions.
#
#   benchmarks/gpu/run.sh [--again] [--seconds S] [--limit PART=S] [--pack FILE.tar.gz] [FOLDER] [PART...]
#
# FOLDER: where results go, models/results/DEVICE-DATE by default. PART: smoke (one kernel of each kind), machine,
# kernels (the runs of plan.json, the most wanted first), traffic (ncu), memcheck and racecheck (compute-sanitizer, at
# ragged sizes), report; all by default, in this order. Every run is saved when it is done and not made again, so that
# an interrupted session continues where it stopped; `--again` repeats everything. After S seconds (420) nothing more is
# started; `--limit` does the same for one part. A run that fails is listed with its reason, and one that hangs is
# abandoned after a minute; the rest continues, in a new process if the device needs one. `--pack` keeps the whole folder
# in one file while it grows, and starts from what that file holds. `report` needs no GPU. The settings of the card stay
# as they are. Sizes come from plan.json; after changing kernels, `python -m benchmarks.gpu.sizing` makes it again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
begun=$(date +%s)
for _ in {1..30}; do
    status=0
    "${PYTHON:-python3}" -m benchmarks.gpu --begun "$begun" "$@" || status=$?
    [ "$status" -eq 75 ] || exit "$status"
done
exit 75
