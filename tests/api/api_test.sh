#!/usr/bin/env bash
# The headers that //:weft exports, which this test has as data, must keep what docs/api.md promises.
exec tools/api --check
