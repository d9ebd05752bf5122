#!/usr/bin/env bash
# prints_test.sh PROGRAM FILE: runs a program, which must succeed and print exactly the lines of the file.
set -euo pipefail

output=$("$1")
diff "$2" <(echo "$output")
