#!/usr/bin/env bash
# Runs a test in Python against the module that the build made. Its arguments are those of Python.
set -euo pipefail

if ! python3 -c 'import sys, numpy; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then
  echo 'skipped: python3 is not version 3.11, or has no NumPy'
  exit 0
fi
# A script is a link to the source tree, whose folder must not be searched for modules.
PYTHONSAFEPATH=1 PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$PWD/apps/python" exec python3 "$@"
