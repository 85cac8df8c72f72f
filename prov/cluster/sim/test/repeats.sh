#!/bin/sh
# Runs some seeds twice, the second time with a trace, and compares every word.
#   repeats.sh PATH-OF-CLUSTER-SIM
set -u
sim=$1
trace=$(mktemp)
trap 'rm -f "$trace"' EXIT
for seed in 3 14 159 2653 58979; do
    first=$("$sim" --seed "$seed") || exit 1
    second=$("$sim" --seed "$seed" --trace "$trace") || exit 1
    if [ "$first" != "$second" ]; then
        printf 'seed %s is not one run but two:\n%s\n%s\n' "$seed" "$first" "$second"
        exit 1
    fi
    [ -s "$trace" ] || { echo "seed $seed left no trace"; exit 1; }
    case "$first" in *digest*) ;; *) echo "seed $seed has no digest"; exit 1 ;; esac
done
for wrong in "--workload none-such" "--faults none-such" "--no-such-option"; do
    # shellcheck disable=SC2086
    "$sim" $wrong >/dev/null 2>&1 && { echo "$wrong is not refused"; exit 1; }
done
exit 0
