#!/usr/bin/env bash
# Runs the program twice: each loss must be below the one before it, the last below a hundredth of the first, and both
# runs must print the same.
set -euo pipefail

output=$("$1")
echo "$output"
awk '
  /loss/ { loss = $NF; if (!lines++) first = loss; else if (loss >= last) rose = 1; last = loss }
  END { exit !(lines >= 3 && !rose && loss < first / 100) }' <<<"$output" || {
  echo 'the loss did not fall' >&2
  exit 1
}
diff <(echo "$output") <("$1")
