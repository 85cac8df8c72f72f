// Preloaded into the programs of ulfm.py: MPI_Comm_dup returns when every process has the new communicator.
//
// Open MPI from 5.0.10 on crashes when one process revokes a communicator that another is still making. MPI_Comm_dup lets
// the first process go as soon as all have agreed. The others still lack comm->c_coll, and ompi_comm_revoke_local() calls it.
#include <mpi.h>

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* copy) {
  const int result = PMPI_Comm_dup(comm, copy);
  if (result == MPI_SUCCESS)
    PMPI_Barrier(comm);  // fails if a process has died, which the program notices by itself
  return result;
}
