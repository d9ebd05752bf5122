#!/usr/bin/env bash
# tools/site builds a site of all pages, finds broken links and pictures of other hosts, and keeps the source tidy.
set -euo pipefail

fail() { echo "FAILED: $*" >&2; exit 1; }

source=$TEST_TMPDIR/source
mkdir -p "$source/tools"
cp -rL docs README.md CONTRIBUTING.md "$source"
cp -rL tools/site tools/mkdocs "$source/tools"

"$source/tools/site" "$TEST_TMPDIR/site" || fail 'the site was not built'
for page in index tour/index tour/vi/index tour/02_scale commands tutorials/sharpness CONTRIBUTING; do
  [ -s "$TEST_TMPDIR/site/$page.html" ] || fail "$page.html is missing"
done
grep -q 'href="tour/index.html"' "$TEST_TMPDIR/site/index.html" || fail 'the start page does not link to the tour'
grep -q 'href="../index.html"' "$TEST_TMPDIR/site/tour/index.html" || fail 'the tour does not link to the start page'
grep -q 'tour/02_scale.html' "$TEST_TMPDIR/site/search/search_index.json" || fail 'the search does not find the tour'
for language in 简体中文 繁體中文 'Tiếng Việt'; do
  grep -q "$language" "$TEST_TMPDIR/site/commands.html" || fail "the navigation has no section $language"
done
! grep -q 'src="http' "$TEST_TMPDIR/site/index.html" || fail 'a page loads files of another host'

# Expects an error whose message matches the first argument if the second one is a line of a page.
refuses() {
  cp docs/results.md "$source/docs/results.md"
  echo "$2" >>"$source/docs/results.md"
  ! "$source/tools/site" "$TEST_TMPDIR/broken" 2>"$TEST_TMPDIR/errors" || fail "accepted: $2"
  grep -q "$1" "$TEST_TMPDIR/errors" || fail "no message '$1' for: $2: $(cat "$TEST_TMPDIR/errors")"
}
refuses missing.md '[a page](missing.md)'
refuses missing.svg '![a picture](pictures/missing.svg)'
refuses 'design.html#nowhere' '[a heading](design.md#nowhere)'
refuses 'requests to other hosts' '![a picture](https://example.com/picture.png)'
touch "$source/WORKSPACE"
refuses models/missing.h '[a file](../models/missing.h)'
