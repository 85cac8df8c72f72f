/* ../tasks.c with MPI: the last rank is the master, has the queue, and computes nothing; the others ask it. Options: as
 * there, without the first three. */
#include "../tasks.h"

#include <stdlib.h>
#include <string.h>

#include "../shaped.h"
#include "report.h"

enum { kResult, kTask, kEnd };

/* Workers that ask while there are no tasks wait in `idle`. */
static uint64_t give_tasks(int workers) {
  struct board tasks[kTasksMax] = {{0}};
  int* const idle = malloc((size_t)workers * sizeof *idle);
  if (idle == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  uint64_t waiting = 1, open = 1, found = 0;
  int idle_count = 0;
  while (idle_count < workers || open > 0) {
    struct result r;
    MPI_Status status;
    MPI_Recv(&r, sizeof r, MPI_BYTE, MPI_ANY_SOURCE, kResult, MPI_COMM_WORLD, &status);
    idle[idle_count++] = status.MPI_SOURCE;
    found += r.found;
    memcpy(tasks + waiting, r.next, r.tasks * sizeof *tasks);
    waiting += r.tasks;
    if (r.looked_at > 0 || r.tasks > 0) open += r.tasks - 1; /* else it asks for the first time */
    for (; waiting > 0 && idle_count > 0; --idle_count)
      MPI_Send(&tasks[--waiting], sizeof *tasks, MPI_BYTE, idle[idle_count - 1], kTask, MPI_COMM_WORLD);
  }
  for (int i = 0; i < workers; ++i) MPI_Send(NULL, 0, MPI_BYTE, i, kEnd, MPI_COMM_WORLD);
  free(idle);
  return found;
}

static void take_tasks(int master, int n, double nanoseconds) {
  struct result r = {.found = 0};
  for (;;) {
    struct board task;
    MPI_Status status;
    MPI_Send(&r, sizeof r, MPI_BYTE, master, kResult, MPI_COMM_WORLD);
    MPI_Recv(&task, sizeof task, MPI_BYTE, master, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    if (status.MPI_TAG == kEnd) return;
    r = work(task, n);
    shaped_compute(nanoseconds * (double)r.looked_at);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int n = argc > 1 ? atoi(argv[1]) : 9, workers = size - 1;
  const double nanoseconds = argc > 2 ? atof(argv[2]) : 0;
  if (n < kQueensMin || n > kQueensMax || workers < 1) MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Barrier(MPI_COMM_WORLD);

  const double started = MPI_Wtime();
  if (rank == workers) {
    wrong = give_tasks(workers) != known_ways(n);
  } else {
    take_tasks(workers, n, nanoseconds);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  report("tasks", workers, MPI_Wtime() - started, wrong);
  MPI_Finalize();
  return wrong > 0;
}
