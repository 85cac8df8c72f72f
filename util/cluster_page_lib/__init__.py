"""cluster-page, the cluster in a browser: it shows nodes, links and jobs; users submit jobs and act on nodes.

settings      options
assets        htmx, uPlot and xterm.js: fetched by npm, known by their hashes, served from here
certificate   a certificate of its own, made at the first start
accounts      passwords, asked of PAM; wrong ones are counted and slowed down
sessions      users that are logged in
cluster       what the agent of this node knows, asked at most three times a second for all users
commands      programs that run as users
machines      virtual machines: named sets of nodes, kept by cluster-machine as the user
terminals     shells of users in the browser, with terminal_child as the user
archive       entries that outlive the page
watch         events and what jobs have used, noted down while the page runs
gate          connections: limits for each address, deadlines
jobs/         what users run: through Slurm, or over mpirun on the nodes that are free
web/          requests and answers: guard (headers, origin), forms (CSRF), access (roles), pages
server        one process: TLS, the application, the end

A module knows those above it. The page is a separate process, so that the agent stays small. It needs the agent of its
node, and it needs root, to ask PAM and to run jobs as their users. Browsers load nothing from other hosts.
"""
