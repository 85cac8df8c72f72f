"""Virtual machines: named sets of nodes that a user has chosen, and programs that run on them.

store      the machines of one user, in a file in the home directory
cli        cluster-machine: choose, save, show, remove
run_cli    cluster-run: options
launch     the command line of the launcher, and what it needs in its environment
as_rank.sh gives each process its rank in the same words, whichever launcher started it

The page runs cluster-machine as its user, so both have the same machines.
"""
