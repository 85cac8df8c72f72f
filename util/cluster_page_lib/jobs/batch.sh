#!/bin/sh
# What sbatch runs for a program of the form: its words come as arguments and are never read by a shell again.
exec mpirun "$@"
