"""cluster-perf: the same work over `cluster` and over its peers, interleaved, and the report.

cli         options, the order of things, messages
plan        what is measured in which mode
transports  the peers: what each is, where it can run, how it is set up
schedule    all runs of a plan in a fair order
placement   inside one node, between two virtual nodes: how a command is run on either side
runs        one run of one group of measures over one transport
ucx         the same for UCX, which has a program of its own
choices     the ways frames could go between nodes, and the table that says which is best
samples     all figures with the phase of the machine; medians, comparisons, ratios
rows        the lines of the tables: what is compared with what, and which of them a peer wins
limits      which bare limit bounds which measure
report      JSON, and the check that it is complete
table       the text
verdict     in words what won, what lost and why
markdown    the table of --readme
overview    the picture of the README, drawn from that table
plots       the pictures; a program of its own, for it needs matplotlib
machine     what it all ran on
demo        util/demo: data check and MPI measurements
"""
