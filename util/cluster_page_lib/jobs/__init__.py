"""What users run. A queue has a `kind`, and `submit`, `jobs`, `job`, `cancel` and `output`. There are four: `slurm`,
`slurm_rest` and `gridengine` also drain and resume nodes; `own_queue` starts mpirun on nodes that no other job has. Commands are lists of words; no shell ever
reads a field of a form."""
