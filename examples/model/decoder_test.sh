#!/usr/bin/env bash
# Trains the decoder on a text that repeats itself. The model must know the text by heart, and say the same each time.
set -euo pipefail

decoder=$PWD/$1
cd "${TEST_TMPDIR:?}"
for _ in {1..50}; do echo 'What has roots as nobody sees, is taller than trees?'; done >text
"$decoder" train text model.safetensors 150 | tee losses
awk '{ loss[NR] = $NF } END { exit !(NR == 3 && loss[3] < loss[1] / 4 && loss[3] < 0.3) }' losses
"$decoder" generate model.safetensors 'What has roots' 38 | tee first
grep -qx 'What has roots as nobody sees, is taller than trees?' first
"$decoder" generate model.safetensors 'What has roots' 38 | cmp - first
! "$decoder" generate none.safetensors 'What' 1 2>error && grep 'none.safetensors' error
