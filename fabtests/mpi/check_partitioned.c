// Partitioned messages of MPI 4: one message made ready piece by piece, in any order.
#include <stdlib.h>
#include <string.h>

#include "check.h"

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)

enum { kParts = 12, kPartBytes = 7000 };

static void partitioned(void) {
  const int next = (job.rank + 1) % job.size;
  const int previous = (job.rank + job.size - 1) % job.size;
  char *out = allocate(kParts * kPartBytes), *in = allocate(kParts * kPartBytes);
  MPI_Request requests[2];
  MPI_Psend_init(out, kParts, kPartBytes, MPI_BYTE, next, 41, job.comm, MPI_INFO_NULL, &requests[0]);
  MPI_Precv_init(in, kParts, kPartBytes, MPI_BYTE, previous, 41, job.comm, MPI_INFO_NULL, &requests[1]);
  for (int round = 0; round < 4; ++round) {
    memset(in, 0, kParts * kPartBytes);
    MPI_Startall(2, requests);
    for (int i = 0; i < kParts; ++i) {
      const int part = (i * 5 + round) % kParts;  // every part once, in an order that changes
      fill(out + part * kPartBytes, kPartBytes, job.rank, next, round * kParts + part);
      MPI_Pready(part, requests[0]);
    }
    for (int part = 0; part < kParts; ++part) {
      int here = 0;
      while (!here) MPI_Parrived(requests[1], part, &here);
      expect_bytes(in + part * kPartBytes, kPartBytes, previous, job.rank, round * kParts + part);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  free(out);
  free(in);
}

const struct test kPartitionedTests[] = {{"partitioned", partitioned}, {NULL, NULL}};

#else

const struct test kPartitionedTests[] = {{NULL, NULL}};

#endif
