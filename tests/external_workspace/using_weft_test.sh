#!/usr/bin/env bash
# using_weft_test.sh PAGE [FOLDER]: every block of code on the page that names a file, as in "```cpp two_layers.cc", must
# stand in that file of the folder, line by line. On the page Weft lies at ../weft, here at ../.. .
set -euo pipefail

awk -v folder="${2:-.}" '
  function read(path,    line, text) {
    while ((getline line <path) > 0) text = text line "\n"
    close(path)
    return text
  }
  /^```/ && !inside { inside = 1; file = $2; block = ""; start = NR; next }
  /^```/ {
    inside = 0
    if (file == "") next
    blocks++
    gsub(/\.\.\/weft/, "../..", block)
    if (index("\n" read(folder "/" file), "\n" block) == 0) {
      print FILENAME ":" start ": this is not in " file
      wrong++
    }
    next
  }
  inside { block = block $0 "\n" }
  END {
    print blocks + 0 " blocks, " wrong + 0 " differ"
    exit blocks == 0 || wrong > 0 || inside
  }' "$1" >&2
