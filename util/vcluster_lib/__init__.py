"""The rooms of vcluster.

    errors     what went wrong, in one line, for the user
    processes  finding and ending exactly the processes that are ours
    namespaces entering a node; starting the process that keeps a node alive
    network    bridges, ports, addresses and shaping
    temporary  clusters that live as long as one process
    state      what is remembered about a cluster under /run/vcluster/NAME
    cluster    up, down: the rooms above put together
    launchers  the mpirun of each MPI library, and how it is told the nodes
    job        one run of it, from start to nothing left
    faults     bad networks: programs at the ports of the switch, counts of what they did
    bpf        the maps of these programs
    native     what is no Python: built at its first use
    units      numbers as people write them
    cli        options, help, output; those of faults in faults_cli

A cluster consists of one `switch` namespace that holds a bridge per rail, and of N nodes, each with a network,
UTS, IPC and mount namespace. A sleeping process, the holder, keeps each of them alive. The machine's own network
namespace receives nothing: no link, no address, no route; so names and addresses cannot collide with other uses.
"""
