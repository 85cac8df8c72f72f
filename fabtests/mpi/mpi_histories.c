// mpi_histories: random operations of all ranks on few words of windows, written down for a judge.
//
//   mpi_histories KINDS SYNCS ROUNDS SEED DIRECTORY
//
// KINDS, of windows: allocate, create, dynamic, shared (of the ranks of a node); SYNCS: fence, pscw (post, start, complete
// and wait, every rank towards all), lock (lock and unlock, exclusive or shared), flush (lock_all, with flushes); both
// are lists with commas, and each pair has a window of its own.
//
// In each round all ranks operate at the same time on the words of one slot of one rank, each operation completed alone
// or a few together; some ranks work or sleep in between. MPI promises atomicity only among accumulates of one operation
// (and MPI_NO_OP) on one type, so each word has an operation of its own: a sum, an exclusive or, one that is replaced,
// one that is compared and swapped, one that one rank puts and all get eight rounds later (in shared windows also by a load),
// and, under exclusive locks, one that is increased by a get and a put. Each rank writes to a file of its own
// in DIRECTORY, for judge_histories, times in nanoseconds of the machine's clock:
//
//   op PLACE RANK WORD BITS KIND OPERAND COMPARAND FETCHED|- BEGAN ENDED
//   end PLACE WORD BITS VALUE
#include <inttypes.h>
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kSum, kXor, kReplaced, kSwapped, kPut, kLocked, kWords };
enum {
  kTurns = 4,
  kBlock = 8,
  kSlotBytes = kWords * 8,
  kRoundsMax = 4096,
  kRanksMax = 8,
  kSecondsStill = 60
};
enum sync { kFence, kPscw, kLock, kFlush };
static const char* const kSyncs[] = {"fence", "pscw", "lock", "flush"};

struct turn {
  const char* kind;
  int word, owner, slot, fetches, open;
  uint64_t operand, comparand, fetched, began, ended;
};

static int rank, size, group;
static uint64_t seed;
static MPI_Comm comm;
static MPI_Group everyone;
static MPI_Win win;
static enum sync sync_by;
static char* memory;
static int is_shared;
static MPI_Aint bases[kRanksMax];
static struct turn turns[kRoundsMax][kTurns];
static uint64_t last[kRoundsMax][kWords];

static const int kBits[kWords] = {64, 32, 64, 64, 64, 64};

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint64_t draw(uint64_t below) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (seed >> 33) % below;
}

static void stand_still(int signal_number) {
  (void)signal_number;
  static const char text[] = "STANDS STILL mpi_histories\n";
  if (write(1, text, sizeof text - 1) < 0) _exit(1);
  _exit(3);
}

static void open_window(const char* kind, MPI_Aint bytes) {
  MPI_Aint here = 0;
  is_shared = strcmp(kind, "shared") == 0;
  comm = MPI_COMM_WORLD;
  if (is_shared) MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Comm_group(comm, &everyone);
  MPI_Comm_rank(MPI_COMM_WORLD, &group);
  MPI_Bcast(&group, 1, MPI_INT, 0, comm);
  if (strcmp(kind, "allocate") == 0) {
    MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, comm, &memory, &win);
  } else if (is_shared) {
    MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, comm, &memory, &win);
  } else {
    memory = calloc(1, (size_t)bytes);
    if (strcmp(kind, "create") == 0) {
      MPI_Win_create(memory, bytes, 1, MPI_INFO_NULL, comm, &win);
    } else {
      MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win);
      MPI_Win_attach(win, memory, bytes);
      MPI_Get_address(memory, &here);
    }
  }
  memset(memory, 0, (size_t)bytes);
  MPI_Allgather(&here, 1, MPI_AINT, bases, 1, MPI_AINT, comm);
}

static void close_window(const char* kind) {
  if (strcmp(kind, "dynamic") == 0) MPI_Win_detach(win, memory);
  MPI_Win_free(&win);
  if (strcmp(kind, "create") == 0 || strcmp(kind, "dynamic") == 0) free(memory);
  MPI_Group_free(&everyone);
  if (is_shared) MPI_Comm_free(&comm);
}

// Works or sleeps now and then, and calls nothing.
static void pause_sometimes(void) {
  if (draw(8) == 0) {
    for (const uint64_t until = now() + draw(100000); now() < until;) continue;
  } else if (draw(24) == 0) {
    const struct timespec time = {0, (long)draw(1000000)};
    nanosleep(&time, NULL);
  }
}

static void choose(struct turn* turn, int round, int number) {
  const int block = round / kBlock, writer = rank == round % size;
  static uint64_t seen_by_swap;
  *turn = (struct turn){.owner = block % size, .slot = round, .word = (int)draw(kSwapped + 1)};
  if (number == 0 && writer) turn->word = kPut;
  if (number > 0 && block > 0 && draw(4) == 0)
    turn->word = kPut, turn->slot = round - kBlock, turn->owner = (block - 1) % size;
  if (number > 0 && sync_by == kLock && draw(4) == 0)
    turn->word = kLocked, turn->slot = round, turn->owner = block % size;
  const int puts = turn->word == kPut && turn->slot == round, reads = turn->word < kSwapped && draw(4) == 0;
  static const char* const kinds[] = {"sum", "bxor", "write", "swap", "read", "sum"};
  turn->kind = reads ? "read" : puts ? "write" : kinds[turn->word];
  turn->fetches =
      reads || turn->word == kSwapped || turn->word == kLocked || (turn->word == kPut ? !puts : draw(2) == 0);
  const uint64_t unique = (uint64_t)(round * 64 + rank * kTurns + number + 1);
  turn->operand = turn->word == kSum      ? 1 + draw(5)
                  : turn->word == kXor    ? (uint64_t)1 << draw(32)
                  : turn->word == kLocked ? 1
                                          : unique << 32 | unique;
  if (strcmp(turn->kind, "read") == 0) turn->operand = 0;
  if (number == 0) seen_by_swap = 0;
  turn->comparand = draw(2) ? seen_by_swap : 0;
  if (turn->word == kSwapped) seen_by_swap = turn->operand;
}

// Increases a word by a get and a put; the caller holds the exclusive lock.
static void increase(struct turn* turn, MPI_Aint at) {
  MPI_Get(&turn->fetched, 8, MPI_BYTE, turn->owner, at, 8, MPI_BYTE, win);
  MPI_Win_flush(turn->owner, win);
  uint64_t next = turn->fetched + turn->operand;
  MPI_Put(&next, 8, MPI_BYTE, turn->owner, at, 8, MPI_BYTE, win);
  MPI_Win_flush_local(turn->owner, win);
}

static void start(struct turn* turn) {
  static const MPI_Aint kOffset = kSlotBytes;
  const MPI_Aint inside = turn->slot * kOffset + 8 * turn->word, at = bases[turn->owner] + inside;
  const MPI_Datatype type = kBits[turn->word] == 32 ? MPI_UINT32_T : MPI_UINT64_T;
  const MPI_Op ops[] = {MPI_SUM, MPI_BXOR, MPI_REPLACE};
  const int passive = sync_by == kLock || sync_by == kFlush;
  turn->began = now();
  turn->open = 1;
  if (turn->word == kLocked) {
    increase(turn, at);
  } else if (turn->word == kPut && is_shared && turn->fetches && draw(2)) {
    MPI_Aint bytes = 0;
    int unit = 0;
    char* base = NULL;
    MPI_Win_shared_query(win, turn->owner, &bytes, &unit, &base);
    memcpy(&turn->fetched, base + inside, 8);
  } else if (turn->word == kPut && turn->fetches) {
    MPI_Get(&turn->fetched, 1, type, turn->owner, at, 1, type, win);
  } else if (turn->word == kPut) {
    MPI_Put(&turn->operand, 1, type, turn->owner, at, 1, type, win);
  } else if (turn->word == kSwapped) {
    MPI_Compare_and_swap(&turn->operand, &turn->comparand, &turn->fetched, type, turn->owner, at, win);
  } else if (!turn->fetches) {
    MPI_Accumulate(&turn->operand, 1, type, turn->owner, at, 1, type, ops[turn->word], win);
  } else {
    const MPI_Op op = strcmp(turn->kind, "read") == 0 ? MPI_NO_OP : ops[turn->word];
    if (!passive || draw(4)) {
      MPI_Fetch_and_op(&turn->operand, &turn->fetched, type, turn->owner, at, op, win);
    } else {
      MPI_Request request;
      MPI_Rget_accumulate(&turn->operand, 1, type, &turn->fetched, 1, type, turn->owner, at, 1, type, op, win,
                          &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      turn->ended = now();  // what was fetched is here
    }
  }
}

// These operations are complete; only_fetched: those whose fetched value tells so.
static void end(struct turn* from, const struct turn* to, int only_fetched) {
  const uint64_t time = now();
  for (; from < to; ++from) {
    if (!from->open || (only_fetched && !from->fetches)) continue;
    if (from->ended == 0) from->ended = time;
    from->open = 0;
  }
}

static void play_flushing(struct turn* mine) {
  for (struct turn* turn = mine; turn < mine + kTurns; ++turn) {
    start(turn);
    if (draw(4) == 0) MPI_Win_flush_local_all(win), end(mine, turn + 1, 1);
    if (draw(2)) continue;
    MPI_Win_flush(turn->owner, win);
    for (struct turn* t = mine; t <= turn; ++t) {
      if (t->owner == turn->owner) end(t, t + 1, 0);
    }
    pause_sometimes();
  }
  MPI_Win_flush_all(win);
  end(mine, mine + kTurns, 0);
}

static void play_locking(struct turn* mine) {
  for (struct turn *turn = mine, *next; turn < mine + kTurns; turn = next) {
    int exclusive = draw(3) == 0;
    const struct turn* const stop = draw(2) ? turn + 1 : mine + kTurns;
    for (next = turn; next < stop && next->owner == turn->owner; ++next) exclusive |= next->word == kLocked;
    MPI_Win_lock(exclusive ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, turn->owner, 0, win);
    for (struct turn* t = turn; t < next; ++t) start(t);
    if (draw(4) == 0) pause_sometimes();
    MPI_Win_unlock(turn->owner, win);
    end(turn, next, 0);
    pause_sometimes();
  }
}

// All ranks towards all, between two collective calls.
static void play_together(struct turn* mine) {
  pause_sometimes();
  if (sync_by == kFence) {
    MPI_Win_fence(0, win);
  } else {
    MPI_Win_post(everyone, 0, win);
    MPI_Win_start(everyone, 0, win);
  }
  for (int i = 0; i < kTurns; ++i) {
    start(&mine[i]);
    pause_sometimes();
  }
  if (sync_by == kFence) {
    MPI_Win_fence(0, win);
  } else {
    MPI_Win_complete(win);
    end(mine, mine + kTurns, 1);
    MPI_Win_wait(win);
  }
  end(mine, mine + kTurns, 0);
}

static void play(int round) {
  struct turn* const mine = turns[round];
  for (int i = 0; i < kTurns; ++i) choose(&mine[i], round, i);
  if (sync_by == kFlush) {
    play_flushing(mine);
  } else if (sync_by == kLock) {
    play_locking(mine);
  } else {
    play_together(mine);
  }
}

// What the owner finds in its memory when the operations of these rounds are over.
static void look(int first, int count) {
  if (sync_by == kLock) MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
  for (int round = first; round < first + count; ++round) {
    for (int word = 0; word < kWords; ++word)
      memcpy(&last[round][word], memory + round * kSlotBytes + 8 * word, (size_t)kBits[word] / 8);
  }
  if (sync_by == kLock) MPI_Win_unlock(rank, win);
}

static void run(int rounds) {
  if (sync_by == kFlush) MPI_Win_lock_all(0, win), MPI_Win_sync(win);
  MPI_Barrier(comm);
  for (int round = 0; round < rounds; ++round) {
    const int owns = round / kBlock % size == rank, at_once = sync_by == kFence || sync_by == kPscw;
    alarm(kSecondsStill);
    play(round);
    if (owns && at_once) look(round, 1);
    if ((round + 1) % kBlock != 0 && round + 1 < rounds) continue;
    MPI_Barrier(comm);
    if (sync_by == kFlush) MPI_Win_sync(win);
    if (owns && !at_once) look(round / kBlock * kBlock, round % kBlock + 1);
  }
  if (sync_by == kFlush) MPI_Win_unlock_all(win);
  alarm(kSecondsStill);
}

static void print(FILE* file, const char* kind, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (const struct turn* t = turns[round]; t < turns[round] + kTurns; ++t) {
      char fetched[24] = "-";
      const uint64_t mask = kBits[t->word] == 32 ? UINT32_MAX : UINT64_MAX;
      if (t->fetches) snprintf(fetched, sizeof fetched, "%" PRIu64, t->fetched & mask);
      fprintf(file, "op %s/%s/%d/%d %d %d %d %s %" PRIu64 " %" PRIu64 " %s %" PRIu64 " %" PRIu64 "\n", kind,
              kSyncs[sync_by], group, t->slot, rank, t->word, kBits[t->word], t->kind, t->operand & mask,
              t->comparand, fetched, t->began, t->ended);
    }
    for (int word = 0; word < kWords && round / kBlock % size == rank; ++word)
      fprintf(file, "end %s/%s/%d/%d %d %d %" PRIu64 "\n", kind, kSyncs[sync_by], group, round, word,
              kBits[word], last[round][word]);
  }
}

int main(int argc, char** argv) {
  int world = 0, ranks = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int rounds = argc == 6 ? atoi(argv[3]) : 0;
  if (rounds <= 0 || rounds > kRoundsMax || ranks > kRanksMax) {
    if (world == 0)
      fprintf(stderr,
              "usage: mpirun ... mpi_histories KINDS SYNCS ROUNDS SEED DIRECTORY (at most 8 ranks)\n");
    MPI_Finalize();
    return 2;
  }
  signal(SIGALRM, stand_still);
  seed = strtoull(argv[4], NULL, 10) * 64 + (uint64_t)world;
  char path[4096];
  snprintf(path, sizeof path, "%s/%d.history", argv[5], world);
  FILE* const file = fopen(path, "w");
  if (file == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  char* rest = NULL;
  for (char* kind = strtok_r(argv[1], ",", &rest); kind != NULL; kind = strtok_r(NULL, ",", &rest)) {
    for (int sync = kFence; sync <= kFlush; ++sync) {
      if (strstr(argv[2], kSyncs[sync]) == NULL) continue;
      sync_by = (enum sync)sync;
      if (world == 0) fprintf(stderr, "window %s, %s\n", kind, kSyncs[sync]);
      open_window(kind, (MPI_Aint)rounds * kSlotBytes);
      run(rounds);
      print(file, kind, rounds);
      close_window(kind);
    }
  }
  const int written = fclose(file) == 0;
  MPI_Barrier(MPI_COMM_WORLD);
  if (world == 0 && written) printf("PASS mpi_histories\n");
  fflush(stdout);
  MPI_Finalize();
  return written ? 0 : 1;
}
