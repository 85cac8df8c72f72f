/* How it works. Memory is seen twice: the arena, which libfabric has registered and which is always readable and
 * writable, and the application's view of the same pages, whose protection is the state of each page:
 *
 *   invalid   no access. The first access faults; the page is read from its home into the arena (fi_read).
 *   clean     read only. The first write faults; a copy of the page (its twin) is kept.
 *   dirty     written to. At the next release what differs from the twin is written to the home (fi_write).
 *
 * Pages at their home are never invalid and need no twin. Libfabric never touches the view, only the arena: so a
 * fault comes from the application's own instructions alone, and the handler of SIGSEGV may call libfabric.
 *
 * No process answers requests. What others must know is put where they look for it:
 *   - at a barrier each process puts the set of pages that it wrote into a slot of every other (two slots each, used
 *     in turn: the set of the barrier before may still be read), and adds 1 to every arrival word (fi_atomic);
 *   - each lock has a log of pages written under it, in the memory of its manager. Its new holder reads the log and
 *     drops its copies of what is new there; at release it adds its own. A log that wrapped since means "all".
 * The lock is a queue as in ../lock_counter.c, where its flushes are explained. The rule of those flushes holds
 * everywhere here: data is complete at its target before anything is put that announces it.
 *
 * Words of 8 bytes are what is compared and written back: two processes may write to one page at a time, but not to
 * the same aligned 8 bytes. */
#define _GNU_SOURCE
#include "dsm.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../endpoint.h"

enum { kPage = 4096, kWordsOfPage = kPage / sizeof(uint64_t), kLogEntries = 508, kRanksMax = 256 };
enum state { kInvalid, kClean, kDirty };

/* In the arena of each process; of locks, those that it manages. */
struct lock {
  uint64_t tail;  /* of the queue: rank + 1 of the last that wants it */
  uint64_t count; /* of pages ever added to the log */
  uint32_t log[kLogEntries];
};

struct arena {
  uint64_t arrivals, waits; /* at barriers and waits, of all processes together */
  uint64_t times_set[kDsmConditions],
      is_set[kDsmConditions]; /* how often each condition was set; whether it is */
  uint64_t failed;            /* another process ends the program */
  uint64_t operand, compare, fetched;
  uint64_t next[kDsmLocks], turn[kDsmLocks]; /* one's place in the queue of each lock */
  struct lock locks[kDsmLocks];
  struct lock read_lock; /* where the log of a lock is read to, and written from */
  char sets[];           /* of pages: two slots for each process; the space follows at the next page */
};

/* What one process knows of a lock that it has, or had. */
struct held {
  uint64_t seen;      /* of its log */
  size_t first_flush; /* of the flushes since it got the lock */
};

static struct {
  struct endpoint e;
  struct arena* arena;
  size_t space_offset, pages, set_bytes, allocated;
  char *space, *view,
      *twins; /* the space in the arena, as the application sees it, and copies of dirty pages */
  unsigned char *state, *written; /* of each page; as a set: flushed since the last barrier */
  uint16_t* homes;
  uint32_t* dirty; /* pages, in the order of their first writes */
  size_t dirty_count;
  uint32_t flushed[kLogEntries]; /* since no lock was held; beyond that only counted */
  size_t flush_count;
  struct held held[kDsmLocks];
  int locks_held;
  uint64_t barriers, waits;
  double opened;
  struct dsm_statistics statistics;
} g;

int dsm_rank(void) { return g.e.rank; }
int dsm_size(void) { return g.e.size; }
struct dsm_statistics dsm_statistics(void) {
  return g.statistics;
}

/* ---- remote memory ---- */

static size_t offset_of(const void* local) { return (size_t)((const char*)local - g.e.arena); }

/* `bytes` of the arena at `rank`, from or to the same or another place in one's own. */
static void get(int rank, size_t offset, void* to, size_t bytes) {
  POST(&g.e, fi_read(g.e.ep, to, bytes, g.e.desc, g.e.peers[rank].address, g.e.peers[rank].base + offset,
                     g.e.peers[rank].key, NULL));
}

static void put(int rank, size_t offset, const void* from, size_t bytes) {
  POST(&g.e, fi_write(g.e.ep, from, bytes, g.e.desc, g.e.peers[rank].address, g.e.peers[rank].base + offset,
                      g.e.peers[rank].key, NULL));
}

/* Where `operand` differs from that of the call before, a flush stands between them. */
static void atomic(int rank, const void* word, enum fi_op op, uint64_t operand) {
  g.arena->operand = operand;
  POST(&g.e, fi_atomic(g.e.ep, &g.arena->operand, 1, g.e.desc, g.e.peers[rank].address,
                       g.e.peers[rank].base + offset_of(word), g.e.peers[rank].key, FI_UINT64, op, NULL));
}

static uint64_t swap(int rank, const void* word, uint64_t operand) {
  g.arena->operand = operand;
  POST(&g.e, fi_fetch_atomic(g.e.ep, &g.arena->operand, 1, g.e.desc, &g.arena->fetched, g.e.desc,
                             g.e.peers[rank].address, g.e.peers[rank].base + offset_of(word),
                             g.e.peers[rank].key, FI_UINT64, FI_ATOMIC_WRITE, NULL));
  endpoint_flush(&g.e);
  return g.arena->fetched;
}

static uint64_t compare_swap(int rank, const void* word, uint64_t compare, uint64_t operand) {
  g.arena->operand = operand;
  g.arena->compare = compare;
  POST(&g.e, fi_compare_atomic(g.e.ep, &g.arena->operand, 1, g.e.desc, &g.arena->compare, g.e.desc,
                               &g.arena->fetched, g.e.desc, g.e.peers[rank].address,
                               g.e.peers[rank].base + offset_of(word), g.e.peers[rank].key, FI_UINT64,
                               FI_CSWAP, NULL));
  endpoint_flush(&g.e);
  return g.arena->fetched;
}

/* What a process does again and again while it waits. */
static void wait_a_little(void) {
  endpoint_progress(&g.e);
  if (look(&g.arena->failed)) exit(1); /* that process said why */
}

static void wait_until(const uint64_t* word, uint64_t least) {
  while (look(word) < least) wait_a_little();
}

static void atomic_at_all(const void* word, enum fi_op op, uint64_t operand) {
  for (int rank = 0; rank < g.e.size; ++rank) atomic(rank, word, op, operand);
  endpoint_flush(&g.e);
}

/* ---- pages ---- */

static char* page_in_arena(size_t page) { return g.space + page * kPage; }
static int is_home(size_t page) { return g.homes[page] == g.e.rank; }

static void set_state(size_t page, enum state state) {
  static const int kProtection[] = {PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE};
  if (mprotect(g.view + page * kPage, kPage, kProtection[state])) must(-FI_EOTHER, "mprotect of a page");
  g.state[page] = (unsigned char)state;
}

/* Puts what the application changed to the home: words that differ from the twin, neighbours together. */
static void put_differences(size_t page) {
  const uint64_t* const now = (const uint64_t*)page_in_arena(page);
  const uint64_t* const before = (const uint64_t*)(g.twins + page * kPage);
  for (size_t begin = 0, end; begin < kWordsOfPage; begin = end + 1) {
    for (end = begin; end < kWordsOfPage && now[end] != before[end]; ++end) {
    }
    if (end == begin) continue;
    put(g.homes[page], offset_of(now + begin), now + begin, (end - begin) * sizeof *now);
    g.statistics.written_bytes += (end - begin) * sizeof *now;
  }
  ++g.statistics.written_pages;
}

/* After it all homes have what this process wrote, and the application's next write to a page faults again. */
static void flush_dirty_pages(void) {
  for (size_t i = 0; i < g.dirty_count; ++i) {
    const size_t page = g.dirty[i];
    if (!is_home(page)) put_differences(page);
    set_state(page, kClean);
    g.written[page / 8] |= (unsigned char)(1u << page % 8);
    if (g.locks_held > 0 && g.flush_count++ < kLogEntries) g.flushed[g.flush_count - 1] = (uint32_t)page;
  }
  g.dirty_count = 0;
  endpoint_flush(&g.e);
}

/* Others wrote to the page: one's copy is dropped, after what this process wrote to it went home. */
static void invalidate(size_t page) {
  if (is_home(page) || g.state[page] == kInvalid) return;
  if (g.state[page] == kDirty) flush_dirty_pages();
  set_state(page, kInvalid);
  ++g.statistics.invalidated_pages;
}

static void fetch(size_t page) {
  char* const at = page_in_arena(page);
  get(g.homes[page], offset_of(at), at, kPage);
  endpoint_flush(&g.e);
  set_state(page, kClean);
  ++g.statistics.fetched_pages;
}

static void begin_writing(size_t page) {
  if (!is_home(page)) memcpy(g.twins + page * kPage, page_in_arena(page), kPage);
  g.dirty[g.dirty_count++] = (uint32_t)page;
  set_state(page, kDirty);
}

/* One fault takes a page one state further; a write to an invalid page faults twice. */
static void on_fault(int signal, siginfo_t* info, void* context) {
  (void)context;
  const size_t at = (size_t)((char*)info->si_addr - g.view);
  if ((char*)info->si_addr < g.view || at >= g.allocated || g.state[at / kPage] == kDirty) {
    struct sigaction again = {.sa_handler =
                                  SIG_DFL}; /* an error of the program: it ends when it faults again */
    sigaction(signal, &again, NULL);
  } else if (g.state[at / kPage] == kInvalid) {
    fetch(at / kPage);
  } else {
    begin_writing(at / kPage);
  }
}

/* ---- barriers and locks ---- */

static char* set_of(int rank, uint64_t barrier) {
  return g.arena->sets + ((size_t)rank * 2 + barrier % 2) * g.set_bytes;
}

void dsm_barrier(void) {
  flush_dirty_pages();
  const uint64_t barrier = g.barriers++;
  char* const mine = set_of(g.e.rank, barrier);
  memcpy(mine, g.written, g.set_bytes);
  memset(g.written, 0, g.set_bytes);
  for (int rank = 0; rank < g.e.size; ++rank) {
    if (rank != g.e.rank) put(rank, offset_of(mine), mine, (g.allocated / kPage + 7) / 8);
  }
  endpoint_flush(&g.e);
  atomic_at_all(&g.arena->arrivals, FI_SUM, 1);
  wait_until(&g.arena->arrivals, g.barriers * (uint64_t)g.e.size);
  for (int rank = 0; rank < g.e.size; ++rank) {
    const char* const set = set_of(rank, barrier);
    for (size_t page = 0; page < g.allocated / kPage && rank != g.e.rank; ++page) {
      if (set[page / 8] & 1 << page % 8) invalidate(page);
    }
  }
}

void dsm_wait(void) {
  atomic_at_all(&g.arena->waits, FI_SUM, 1);
  wait_until(&g.arena->waits, ++g.waits * (uint64_t)g.e.size);
}

/* Every process has a copy of each condition, so that a wait looks at its own memory only. The count is for a
 * process that waits and does not see the condition between a set and a reset. */
void dsm_set(int condition) {
  atomic_at_all(&g.arena->is_set[condition], FI_ATOMIC_WRITE, 1);
  atomic_at_all(&g.arena->times_set[condition], FI_SUM, 1);
}

void dsm_reset(int condition) { atomic_at_all(&g.arena->is_set[condition], FI_ATOMIC_WRITE, 0); }

void dsm_wait_set(int condition) {
  const uint64_t before = look(&g.arena->times_set[condition]);
  while (!look(&g.arena->is_set[condition]) && look(&g.arena->times_set[condition]) == before)
    wait_a_little();
}

void dsm_fail(const char* reason) {
  fprintf(stderr, "process %d: %s\n", g.e.rank, reason);
  endpoint_flush(&g.e);
  atomic_at_all(&g.arena->failed, FI_SUM, 1);
  exit(1);
}

static void queue_for(int lock, int manager) {
  struct arena* const a = g.arena;
  const uint64_t me = (uint64_t)g.e.rank + 1;
  atomic(g.e.rank, &a->next[lock], FI_ATOMIC_WRITE, 0);
  atomic(g.e.rank, &a->turn[lock], FI_ATOMIC_WRITE, 0);
  endpoint_flush(&g.e);
  const uint64_t before = swap(manager, &a->locks[lock].tail, me);
  if (before == 0) return;
  atomic((int)before - 1, &a->next[lock], FI_ATOMIC_WRITE, me);
  endpoint_flush(&g.e);
  wait_until(&a->turn[lock], 1); /* set by the predecessor */
}

void dsm_lock(int lock) {
  const int manager = lock % g.e.size;
  struct held* const held = &g.held[lock];
  struct lock* const copy = &g.arena->read_lock;
  queue_for(lock, manager);
  get(manager, offset_of(&g.arena->locks[lock]), copy, sizeof *copy);
  endpoint_flush(&g.e);
  if (copy->count - held->seen > kLogEntries) {
    for (size_t page = 0; page < g.allocated / kPage; ++page) invalidate(page);
  } else {
    for (; held->seen < copy->count; ++held->seen) invalidate(copy->log[held->seen % kLogEntries]);
  }
  held->seen = copy->count;
  held->first_flush = g.flush_count;
  ++g.locks_held;
}

/* Adds the pages flushed since this process got the lock to the log: all, if they are more than fit. */
static void add_to_log(int lock, int manager) {
  struct lock* const copy = &g.arena->read_lock;
  const size_t remote = offset_of(&g.arena->locks[lock]);
  struct held* const held = &g.held[lock];
  if (g.flush_count > kLogEntries) {
    held->seen += kLogEntries + 1;
  } else {
    for (size_t i = held->first_flush; i < g.flush_count; ++i, ++held->seen) {
      uint32_t* const entry = &copy->log[held->seen % kLogEntries];
      *entry = g.flushed[i];
      put(manager, remote + (size_t)((char*)entry - (char*)copy), entry, sizeof *entry);
    }
  }
  copy->count = held->seen;
  put(manager, remote + offsetof(struct lock, count), &copy->count, sizeof copy->count);
  endpoint_flush(&g.e);
}

void dsm_unlock(int lock) {
  struct arena* const a = g.arena;
  const int manager = lock % g.e.size;
  const uint64_t me = (uint64_t)g.e.rank + 1;
  flush_dirty_pages();
  add_to_log(lock, manager);
  if (--g.locks_held == 0) g.flush_count = 0;
  if (compare_swap(manager, &a->locks[lock].tail, me, 0) == me) return;
  wait_until(&a->next[lock], 1); /* a successor has swapped, and will name itself */
  atomic((int)look(&a->next[lock]) - 1, &a->turn[lock], FI_ATOMIC_WRITE, 1);
  endpoint_flush(&g.e);
}

/* ---- the space ---- */

static void* private_memory(size_t bytes) {
  void* const memory =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) must(-FI_ENOMEM, "memory for the state of pages");
  return memory;
}

/* The same pages once more, at an address that is free in all processes: pointers into the space mean the same. */
static char* map_view(size_t bytes) {
  char* const wanted = (char*)(uintptr_t)0x200000000000;
  void* const place =
      mmap(wanted, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (place != wanted) must(-FI_ENOMEM, "the address of the shared space");
  void* const view = mremap(g.space, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, wanted);
  if (view == MAP_FAILED || mprotect(view, bytes, PROT_NONE)) must(-FI_ENOMEM, "a second view of the arena");
  return view;
}

void dsm_open(int argc, char** argv, const char* about, size_t bytes) {
  if (sysconf(_SC_PAGESIZE) != kPage) must(-FI_ENOSYS, "pages that are not 4 KiB");
  const int size = argc == 4 ? atoi(argv[2]) : 0;
  if (size > kRanksMax) must(-FI_EINVAL, "SIZE: at most 256 processes");
  g.pages = (bytes + kPage - 1) / kPage;
  g.set_bytes = (g.pages + 63) / 64 * 8;
  g.space_offset =
      (sizeof(struct arena) + (size_t)(size > 0 ? size : 0) * 2 * g.set_bytes + kPage - 1) / kPage * kPage;
  /* A process that computes does not call libfabric: its provider has to serve the others by itself. */
  endpoint_open(&g.e, argc, argv, about,
                (struct endpoint_options){.arena_bytes = g.space_offset + g.pages * kPage,
                                          .progress = FI_PROGRESS_AUTO});
  g.arena = (struct arena*)g.e.arena;
  g.space = g.e.arena + g.space_offset;
  g.view = map_view(g.pages * kPage);
  g.twins = private_memory(g.pages * kPage);
  g.state = private_memory(g.pages);
  g.written = private_memory(g.set_bytes);
  g.homes = private_memory(g.pages * sizeof *g.homes);
  g.dirty = private_memory(g.pages * sizeof *g.dirty);
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
  if (sigaction(SIGSEGV, &action, NULL)) must(-FI_EOTHER, "sigaction");
  g.opened = dsm_seconds();
  endpoint_barrier(&g.e);
}

void dsm_close(void) {
  dsm_barrier();
  munmap(g.view, g.pages * kPage);
  endpoint_close(&g.e);
}

void* dsm_alloc(size_t bytes, size_t block, int first) {
  const size_t begin = g.allocated / kPage, count = (bytes + kPage - 1) / kPage;
  const size_t block_pages = block > kPage ? (block + kPage - 1) / kPage : 1;
  if (count > g.pages - begin) must(-FI_ENOMEM, "dsm_alloc: the space that dsm_open was asked for");
  for (size_t page = begin; page < begin + count; ++page) {
    g.homes[page] = (uint16_t)(((size_t)first + (page - begin) / block_pages) % (size_t)g.e.size);
    if (is_home(page)) set_state(page, kClean);
  }
  g.allocated += count * kPage;
  return g.view + begin * kPage;
}

/* ---- for examples ---- */

double dsm_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9 - g.opened;
}

void dsm_report(const char* what, double seconds, int wrong) {
  const struct dsm_statistics* const s = &g.statistics;
  if (wrong > 0) fprintf(stderr, "%s, process %d: %d values are wrong\n", what, g.e.rank, wrong);
  if (g.e.rank == 0 && wrong == 0)
    printf("%s: %d processes, %.3f s; process 0 fetched %zu pages, wrote %zu (%zu bytes), dropped %zu\n",
           what, g.e.size, seconds, s->fetched_pages, s->written_pages, s->written_bytes,
           s->invalidated_pages);
}
