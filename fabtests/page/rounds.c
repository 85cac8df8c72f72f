// A job to watch: a token goes round all ranks, again and again; rank 0 says after each round what it has become.
//
//   rounds ROUNDS MILLISECONDS      so many rounds, with a pause after each
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void pause_for(long milliseconds) {
  struct timespec const span = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
  nanosleep(&span, NULL);
}

int main(int count, char** words) {
  MPI_Init(&count, &words);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  long const rounds = count > 1 ? strtol(words[1], NULL, 10) : 10;
  long const milliseconds = count > 2 ? strtol(words[2], NULL, 10) : 100;
  char host[MPI_MAX_PROCESSOR_NAME];
  int length = 0;
  MPI_Get_processor_name(host, &length);
  long token = 0;
  for (long round = 1; round <= rounds; ++round) {
    int const before = (rank + ranks - 1) % ranks;
    if (rank > 0) MPI_Recv(&token, 1, MPI_LONG, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    token += rank + 1;
    MPI_Send(&token, 1, MPI_LONG, (rank + 1) % ranks, 0, MPI_COMM_WORLD);
    if (rank == 0) {
      MPI_Recv(&token, 1, MPI_LONG, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      printf("round %ld of %ld: the token is %ld\n", round, rounds, token);
      fflush(stdout);
    }
    pause_for(milliseconds);
  }
  if (rank == 0) printf("done: %d ranks, from %s\n", ranks, host);
  MPI_Finalize();
  return 0;
}
