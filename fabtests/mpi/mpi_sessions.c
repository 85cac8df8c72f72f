// A program that has a session of MPI-4 and never calls MPI_Init: no MPI_COMM_WORLD, no MPI_COMM_SELF. Collectives with checked
// results in a communicator of the session. One session: Open MPI 5.0.11 crashes in a second one, whatever is preloaded.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 50000 };

#ifdef MPI_SESSION_NULL  // Open MPI 5 has them, and says that it is MPI 3.1
static int values[COUNT];

static void check(int held, const char* what) {
  if (held) return;
  printf("FAIL mpi_sessions: %s\n", what);
  exit(1);
}

static int use(void) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  int rank, size, sum = -1;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "cluster.sessions", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Barrier(comm);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
  check(sum == size * (size - 1) / 2, "MPI_Allreduce");
  for (int root = 0; root < size; ++root) {
    for (int i = 0; i < COUNT; ++i) values[i] = rank == root ? root + i : -1;
    MPI_Bcast(values, COUNT, MPI_INT, root, comm);
    for (int i = 0; i < COUNT; ++i) check(values[i] == root + i, "MPI_Bcast");
  }
  MPI_Barrier(comm);
  MPI_Comm_free(&comm);
  MPI_Group_free(&group);
  MPI_Session_finalize(&session);
  return rank;
}
#endif

int main(void) {
#ifdef MPI_SESSION_NULL  // Open MPI 5 has them, and says that it is MPI 3.1
  if (use() == 0) printf("PASS mpi_sessions\n");
#else
  printf("skipped: this MPI has no sessions\n");
#endif
  return 0;
}
