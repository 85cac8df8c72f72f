// Collectives of many threads of each rank at once (MPI_THREAD_MULTIPLE), each thread in a communicator of its own. All of
// these have the same ranks and are used for the first time at the same moment, in another order on each rank.
// Each thread makes communicators out of its own as well, uses both by turns, and frees them.
//
//   mpi_collective_threads [THREADS [ROUNDS]]
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS_MAX = 16, COUNT = 5000 };

static MPI_Comm comms[THREADS_MAX];
static pthread_barrier_t together;
static int rounds = 20;

static void fail(const char* what, int thread, int round) {
  printf("FAIL mpi_collective_threads: %s, thread %d, round %d\n", what, thread, round);
  fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/// What is sent names the thread: a message of another one's communicator would be noticed.
static void use(MPI_Comm comm, int thread, int round, int* values) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int root = (thread + round) % size;
  const int count = round % 3 == 0 ? COUNT : 1 + round;
  for (int i = 0; i < count; ++i) values[i] = rank == root ? thread * 100000 + round * 100 + i : -1;
  MPI_Bcast(values, count, MPI_INT, root, comm);
  for (int i = 0; i < count; ++i)
    if (values[i] != thread * 100000 + round * 100 + i) fail("MPI_Bcast: wrong element", thread, round);
  const long mine = thread * 1000L + rank;
  long sum = -1;
  MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, comm);
  if (sum != size * (thread * 1000L) + (long)size * (size - 1) / 2)
    fail("MPI_Allreduce: wrong sum", thread, round);
  MPI_Barrier(comm);
}

/// Communicators that end and begin one behind the other, with nothing else between: MPI gives the next one the handle of the last.
static void follow(MPI_Comm comm, int thread, int round, int* values) {
  for (int i = 0; i < 3; ++i) {
    MPI_Comm copy;
    MPI_Comm_dup(comm, &copy);
    use(copy, thread, round + i, values);
    MPI_Comm_free(&copy);
  }
}

/// The same between two threads: one ends the communicator that the other one has used last, and makes another.
static MPI_Comm shared;
static pthread_barrier_t both;

static void* use_shared(void* argument) {
  int* const values = argument;
  for (int round = 0; round < rounds; ++round) {
    pthread_barrier_wait(&both);
    use(shared, THREADS_MAX, round, values);
    pthread_barrier_wait(&both);
  }
  return NULL;
}

static void replace_shared(int* values) {
  pthread_t other;
  pthread_barrier_init(&both, NULL, 2);
  if (pthread_create(&other, NULL, use_shared, values) != 0) fail("no thread", THREADS_MAX, 0);
  for (int round = 0; round < rounds; ++round) {
    MPI_Comm_dup(MPI_COMM_WORLD, &shared);
    pthread_barrier_wait(&both);
    pthread_barrier_wait(&both);
    MPI_Comm_free(&shared);
  }
  pthread_join(other, NULL);
}

static void* work(void* argument) {
  const int thread = (int)(long)argument;
  int* const values = malloc(COUNT * sizeof *values);
  if (values == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  pthread_barrier_wait(&together);
  for (int round = 0; round < rounds; ++round) {
    use(comms[thread], thread, round, values);
    if (round % 5 == 3) follow(comms[thread], thread, round, values);
    if (round % 5 != 1) continue;
    int rank;
    MPI_Comm copy, half;
    MPI_Comm_dup(comms[thread], &copy);
    MPI_Comm_rank(copy, &rank);
    MPI_Comm_split(copy, rank % 2, rank, &half);
    use(half, thread, round, values);
    use(copy, thread, round, values);
    use(half, thread, round, values);
    MPI_Comm_free(&copy);
    use(half, thread, round, values);
    MPI_Comm_free(&half);
  }
  free(values);
  return NULL;
}

int main(int argc, char** argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 4;
  if (threads > THREADS_MAX) threads = THREADS_MAX;
  if (argc > 2) rounds = atoi(argv[2]);
  int provided, rank;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided < MPI_THREAD_MULTIPLE) fail("MPI_THREAD_MULTIPLE is not provided", provided, 0);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  pthread_barrier_init(&together, NULL, (unsigned)threads);
  pthread_t ids[THREADS_MAX];
  for (int i = 0; i < threads; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  for (int i = 0; i < threads; ++i) {
    const long number = (rank % 2 == 0 ? i : threads - 1 - i);
    pthread_create(&ids[i], NULL, work, (void*)number);
  }
  for (int i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
  for (int i = 0; i < threads; ++i) MPI_Comm_free(&comms[i]);
  int* const values = malloc(COUNT * sizeof *values);
  if (values == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  replace_shared(values);
  free(values);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("PASS mpi_collective_threads: %d threads, %d rounds\n", threads, rounds);
  MPI_Finalize();
  return 0;
}
