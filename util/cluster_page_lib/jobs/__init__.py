"""What users run. A queue has `submit`, `jobs`, `job`, `cancel` and `output`; there are two: `slurm`, and `own_queue`, which
starts mpirun on nodes that no other job has. Commands are lists of words; no field of a form ever meets a shell."""
