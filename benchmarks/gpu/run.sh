#!/usr/bin/env bash
# Everything that needs a GPU, and nothing else: characterizes the device, verifies and measures the shipped kernels in
# every variant, reads the memory traffic with ncu where it works, and validates the predictions.
#
#   benchmarks/gpu/run.sh [FOLDER] [PART...]
#
# FOLDER: where results go, models/results/DEVICE-DATE by default. PART: machine, kernels, traffic, report; all by
# default. A part whose files are there is not run again, so that an interrupted run goes on where it was; `--again`
# in front of the folder runs all of it anew. The settings of the card are left as they are.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
exec "${PYTHON:-python3}" -m benchmarks.gpu "$@"
