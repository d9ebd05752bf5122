#!/usr/bin/env bash
# Runs a program, which must succeed and print exactly the lines of a file.
set -euo pipefail

output=$("$1")
diff "$2" <(echo "$output")
