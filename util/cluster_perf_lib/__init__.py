"""cluster-perf: the same work over `cluster` and over its peers, interleaved, and the report.

cli         options, the sequence of steps, messages
plan        what is measured in which mode
transports  the peers: what each is, where it can run, how it is set up
schedule    all runs of a plan in a fair order
placement   inside one node, between two virtual nodes: how a command is run on either side
runs        one run of one group of measures over one transport
ucx         the same for UCX, which has its own measuring program
thresholds  up to which size messages should leave eagerly on this machine
choices     the ways to move frames between nodes, and the table that compares them
samples     all figures with the phase of the machine; medians, comparisons, ratios
rows        the lines of the tables: which figures are compared, and which lines a peer wins
limits      which bare limit bounds which measure
report      JSON, and the check that it is complete
table       the text
verdict     sentences on what won, what lost and why
markdown    the table of --readme
overview    the picture of the README, drawn from that table
plots       the pictures; a separate program, since it needs matplotlib
machine     the machine and its software
demo        util/demo: data check and MPI measurements
"""
