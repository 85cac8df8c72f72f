"""cluster-page, the cluster in a browser: nodes, links and jobs to look at, jobs to submit, orders to give.

settings      options
assets        htmx and uPlot: fetched by npm, known by their hashes, served from here
certificate   a certificate of its own, made at the first start
accounts      passwords, asked of PAM; wrong ones are counted and slowed down
sessions      users that are logged in
cluster       what the agent of this node knows, asked at most three times a second for all users
jobs/         what users run: through Slurm, or over mpirun on the nodes that are free
web/          requests and answers: guard (headers, origin), forms (CSRF), access (roles), pages
server        one process: TLS, the application, the end

A module knows those above it. The page is a process of its own, so that an agent stays small; it needs the agent of its
node and root, for PAM and to run jobs as their users. Nothing is loaded from other hosts.
"""
