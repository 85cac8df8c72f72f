"""What several commands of util/ share.

environment  the environment of programs that run over one provider
processes    child processes, and what /proc shows about them
job_key      the key of a job, made from a secret of the nodes
build        building the programs that a command lacks; the version
built_command  commands in C++ by their names in util/
system_errors  which call of the system failed, on which file, and why
"""
