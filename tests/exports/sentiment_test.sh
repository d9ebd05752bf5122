#!/usr/bin/env bash
# Trains the model of docs/tutorials/train_your_own_model.md on made texts, stops it, resumes it and uses it.
set -euo pipefail

sentiment=$PWD/$1
cd "${TEST_TMPDIR:?}"
good=(brilliant moving funny warm) bad=(dull clumsy boring cold)
for i in {1..400}; do
  printf 'a %s film with %s actors and scene %d\t1\n' "${good[i % 4]}" "${good[i / 4 % 4]}" "$i"
  printf 'a %s film with %s actors and scene %d\t0\n' "${bad[i % 4]}" "${bad[i / 4 % 4]}" "$i"
done >train.tsv
for i in {401..440}; do
  printf 'a %s film with %s actors and scene %d\t1\n' "${good[i % 4]}" "${good[i / 4 % 4]}" "$i"
  printf 'a %s film with %s actors and scene %d\t0\n' "${bad[i % 4]}" "${bad[i / 4 % 4]}" "$i"
done >validation.tsv

"$sentiment" train.tsv validation.tsv whole 'a moving film' 'a dull film' >whole.txt
cat whole.txt
grep -q 'step 600/600  validation loss .*accuracy 100.00%' whole.txt
tail -2 whole.txt | awk 'NR == 1 && $1 < 0.9 || NR == 2 && $1 > 0.1 { exit 1 }'

# A run that was stopped and resumed ends with the same weights.
"$sentiment" train.tsv validation.tsv stopped >stopped.txt &
until grep -q 'step 200/600' stopped.txt; do sleep 0.05; done
kill -INT $! && ! wait $!
"$sentiment" train.tsv validation.tsv stopped --resume
cmp whole/model.safetensors stopped/model.safetensors

# Other data can't continue the run.
head -100 train.tsv >less.tsv
! "$sentiment" less.tsv validation.tsv stopped --resume 2>error.txt
grep -q 'this run began with other data' error.txt
