"""cluster-why: why a job makes no progress, over all its nodes.

report    what is known about the processes of a node, and the gate for what other nodes send
here      looks at the processes of this node
collect   asks all nodes, through their agents or by a remote shell
jobs      which processes belong to a job
graph     who waits for whom, and which causes that can have; it sees reports and nothing else
sentence  the causes in words
answer    all of that for one job
cli       options
"""
