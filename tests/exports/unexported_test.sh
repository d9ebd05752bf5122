#!/usr/bin/env bash
# unexported_test.sh FILE: fails if the file names a library. Add that library to //:weft, or make it visible only where
# it is used.
set -euo pipefail

! grep . "$1"
