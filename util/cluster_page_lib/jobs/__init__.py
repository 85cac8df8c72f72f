"""What users run. A queue has `submit`, `jobs`, `job`, `cancel` and `output`. There are two: `slurm`, which takes orders about
nodes as well, and `own_queue`, which starts mpirun on nodes that no other job has. Commands are lists of words; no field
of a form ever meets a shell."""
