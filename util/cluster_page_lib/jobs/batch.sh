#!/bin/sh
# sbatch runs this for a program from the form. The words of the program are arguments; no shell parses them again.
exec mpirun "$@"
