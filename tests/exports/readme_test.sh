#!/usr/bin/env bash
# Runs README's program: it must print losses, of which the last is below half of the first.
set -euo pipefail

output=$("$1")
echo "$output"
awk '/loss/ { loss = $NF; if (!lines++) first = loss } END { exit !(lines >= 2 && loss < first / 2) }' <<<"$output" || {
  echo 'the loss did not fall' >&2
  exit 1
}
