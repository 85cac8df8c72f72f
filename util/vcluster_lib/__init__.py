"""The modules of vcluster.

    errors     errors of one line, for the user
    processes  finding and ending exactly the processes of a cluster
    namespaces entering a node; starting the process that keeps a node alive
    network    bridges, ports, addresses and shaping
    temporary  clusters that live as long as one process
    state      the record of a cluster under /run/vcluster/NAME
    cluster    up and down, by the modules above
    launchers  the mpirun of each MPI library, and how it learns the nodes
    mpi_job    one run of mpirun, from its start until nothing is left
    agents     clusterd in every node
    accounts   accounts that exist only in the nodes, to log in to the page
    page       cluster-page in the first node
    slurm      slurmctld, slurmd, munged, slurmrestd
    gridengine sge_qmaster, sge_execd
    faults     fault injection: programs at the ports of the switch, and their counts
    bpf        the maps of these programs
    native_build  builds the parts in C and C++ at their first use
    units      numbers with units, as on a command line
    cli        options, help, output; those of faults in faults_cli, of agents in agents_cli

A cluster consists of one `switch` namespace that holds a bridge per rail, and of N nodes, each with a network,
UTS, IPC and mount namespace. A sleeping process, the holder, keeps each of them alive. The machine's own network
namespace receives nothing: no link, no address, no route; so names and addresses cannot collide with other uses.
"""
