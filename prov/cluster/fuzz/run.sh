#!/bin/sh
# Runs a fuzzer over its corpus and on from there, with a seed made of the commit, so that every commit sees
# other inputs. The seed is printed; -seed=N repeats the run.
#   run.sh FUZZER CORPUS FOUND RUNS
set -u
fuzzer=$1 corpus=$2 found=$3 runs=$4
seed=$(printf '%d' "0x$(git rev-parse --short=7 HEAD 2>/dev/null | cut -c 1-7)" 2>/dev/null) || seed=$(date +%Y%m%d)
mkdir -p "$found"
exec "$fuzzer" -seed="$seed" -runs="$runs" -print_final_stats=1 "$found" "$corpus"
