#!/bin/sh
# cluster-run starts each process through this: every launcher says the rank in words of its own.
RANK=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${SLURM_PROCID:-${PMIX_RANK:-0}}}}
LOCAL_RANK=${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-${SLURM_LOCALID:-0}}}
export RANK LOCAL_RANK
if ! command -v "$1" >/dev/null; then
    echo "cluster-run: $(uname -n) has no program $1; name one of the current directory ./$1" >&2
    exit 127
fi
exec "$@"
