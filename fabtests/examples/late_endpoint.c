/* endpoint.h over memory that all processes of one node map, in the worst order that libfabric allows: what is posted is done
 * while the program flushes or waits, the last first, from what its buffers hold by then. A provider need not keep an order
 * that was not asked for; those there are mostly do, so a program that lacks a flush is seen wrong only here. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "endpoint.h"

enum { kPosted = 256, kRanks = 16, kLooksBeforeYield = 64 };
static const struct timespec kLate = {.tv_nsec = 300000};

struct operation {
  enum { kRead, kWrite, kAtomic } kind;
  enum fi_op op; /* of an atomic */
  void* local;
  char* remote;
  size_t bytes;
  const uint64_t* compare;
  uint64_t* fetched;
};

static struct {
  struct fid_ep ep;
  struct fi_ops_rma rma;
  struct fi_ops_atomic atomic;
  char* arenas[kRanks];
  struct operation posted[kPosted];
  size_t count;
} network;

void must(ssize_t result, const char* tried) {
  if (result >= 0) return;
  fprintf(stderr, "%s: %s\n", tried, fi_strerror((int)-result));
  exit(1);
}

static ssize_t post(struct operation operation, fi_addr_t to, uint64_t offset) {
  if (network.count == kPosted) return -FI_EAGAIN;
  operation.remote = network.arenas[to] + offset;
  network.posted[network.count++] = operation;
  return 0;
}

static ssize_t post_read(struct fid_ep* ep, void* local, size_t bytes, void* desc, fi_addr_t from,
                         uint64_t offset, uint64_t key, void* context) {
  (void)ep, (void)desc, (void)key, (void)context;
  return post((struct operation){.kind = kRead, .local = local, .bytes = bytes}, from, offset);
}

static ssize_t post_write(struct fid_ep* ep, const void* local, size_t bytes, void* desc, fi_addr_t to,
                          uint64_t offset, uint64_t key, void* context) {
  (void)ep, (void)desc, (void)key, (void)context;
  return post((struct operation){.kind = kWrite, .local = (void*)local, .bytes = bytes}, to, offset);
}

static ssize_t post_atomic(struct fid_ep* ep, const void* operand, size_t count, void* desc, fi_addr_t to,
                           uint64_t offset, uint64_t key, enum fi_datatype type, enum fi_op op,
                           void* context) {
  (void)ep, (void)count, (void)desc, (void)key, (void)type, (void)context;
  return post((struct operation){.kind = kAtomic, .op = op, .local = (void*)operand}, to, offset);
}

static ssize_t post_fetch(struct fid_ep* ep, const void* operand, size_t count, void* desc, void* fetched,
                          void* fetched_desc, fi_addr_t to, uint64_t offset, uint64_t key,
                          enum fi_datatype type, enum fi_op op, void* context) {
  (void)ep, (void)count, (void)desc, (void)fetched_desc, (void)key, (void)type, (void)context;
  return post((struct operation){.kind = kAtomic, .op = op, .local = (void*)operand, .fetched = fetched}, to,
              offset);
}

static ssize_t post_compare(struct fid_ep* ep, const void* operand, size_t count, void* desc,
                            const void* compare, void* compare_desc, void* fetched, void* fetched_desc,
                            fi_addr_t to, uint64_t offset, uint64_t key, enum fi_datatype type, enum fi_op op,
                            void* context) {
  (void)ep, (void)count, (void)desc, (void)compare_desc, (void)fetched_desc, (void)key, (void)type,
      (void)context;
  return post(
      (struct operation){
          .kind = kAtomic, .op = op, .local = (void*)operand, .compare = compare, .fetched = fetched},
      to, offset);
}

/* No aligned word of 8 bytes is seen half. */
static void copy(char* to, const char* from, size_t bytes) {
  const int words = ((uintptr_t)to | (uintptr_t)from | bytes) % sizeof(uint64_t) == 0;
  for (size_t i = 0; words && i < bytes; i += sizeof(uint64_t))
    __atomic_store_n((uint64_t*)(to + i), __atomic_load_n((const uint64_t*)(from + i), __ATOMIC_RELAXED),
                     __ATOMIC_RELEASE);
  if (!words) memcpy(to, from, bytes);
}

static uint64_t change(const struct operation* o) {
  uint64_t* const word = (uint64_t*)o->remote;
  const uint64_t operand = *(const uint64_t*)o->local;
  uint64_t before = o->compare != NULL ? *o->compare : 0;
  switch (o->op) {
    case FI_SUM: return __atomic_fetch_add(word, operand, __ATOMIC_ACQ_REL);
    case FI_ATOMIC_WRITE: return __atomic_exchange_n(word, operand, __ATOMIC_ACQ_REL);
    case FI_CSWAP:
      __atomic_compare_exchange_n(word, &before, operand, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
      return before; /* what was there, where it differs */
    default: must(-FI_EOPNOTSUPP, "an atomic operation that the test has not"); return 0;
  }
}

/* Does what was posted last. By an atomic programs announce things, so the rest comes when others have acted on that. */
int endpoint_progress(struct endpoint* e) {
  if (network.count == 0) {
    if (++e->empty_looks % kLooksBeforeYield == 0) sched_yield();
    return 0;
  }
  const struct operation* const o = &network.posted[--network.count];
  if (o->kind == kRead) copy(o->local, o->remote, o->bytes);
  if (o->kind == kWrite) copy(o->remote, o->local, o->bytes);
  if (o->kind == kAtomic) {
    const uint64_t before = change(o);
    if (o->fetched != NULL) *o->fetched = before;
    if (network.count > 0) nanosleep(&kLate, NULL);
  }
  --e->outstanding;
  return 1;
}

void endpoint_flush(struct endpoint* e) {
  while (e->outstanding > 0) endpoint_progress(e);
}

int endpoint_retry(struct endpoint* e, ssize_t result, const char* call) {
  if (result == -FI_EAGAIN) {
    endpoint_progress(e);
    return 1;
  }
  must(result, call);
  ++e->outstanding;
  return 0;
}

static void progress(void* argument) { endpoint_progress(argument); }

void endpoint_barrier(struct endpoint* e) {
  char mine = 0, all[kRanks];
  bootstrap_exchange(&e->bootstrap, &mine, all, 1, progress, e);
}

static char* map_arena(int file, size_t bytes) {
  void* const arena = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (arena == MAP_FAILED) must(-FI_ENOMEM, "memory for an arena");
  return arena;
}

/* The arena of each is a file without a name, which the others open where the kernel lists it. */
static void map_arenas(struct endpoint* e) {
  struct {
    pid_t process;
    int file;
  } mine = {getpid(), memfd_create("arena", MFD_CLOEXEC)}, all[kRanks];
  if (mine.file < 0 || ftruncate(mine.file, (off_t)e->options.arena_bytes)) must(-FI_ENOMEM, "memfd");
  bootstrap_exchange(&e->bootstrap, &mine, all, sizeof mine, NULL, NULL);
  for (int rank = 0; rank < e->size; ++rank) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)all[rank].process, all[rank].file);
    const int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) must(-FI_ENOENT, path);
    network.arenas[rank] = map_arena(file, e->options.arena_bytes);
    close(file);
    e->peers[rank].address = (fi_addr_t)rank;
  }
  e->arena = network.arenas[e->rank];
}

void endpoint_open(struct endpoint* e, int argc, char** argv, const char* about,
                   struct endpoint_options options) {
  memset(e, 0, sizeof *e);
  e->options = options;
  e->rank = argc == 4 ? atoi(argv[1]) : -1;
  e->size = argc == 4 ? atoi(argv[2]) : 0;
  if (e->rank < 0 || e->rank >= e->size || e->size > kRanks) must(-FI_EINVAL, about);
  bootstrap_open(&e->bootstrap, e->rank, e->size, argv[3]);
  e->peers = calloc((size_t)e->size, sizeof *e->peers);
  if (e->peers == NULL) must(-FI_ENOMEM, "memory for addresses");
  map_arenas(e);
  network.rma = (struct fi_ops_rma){.read = post_read, .write = post_write};
  network.atomic =
      (struct fi_ops_atomic){.write = post_atomic, .readwrite = post_fetch, .compwrite = post_compare};
  network.ep.rma = &network.rma;
  network.ep.atomic = &network.atomic;
  e->ep = &network.ep;
}

void endpoint_close(struct endpoint* e) {
  endpoint_flush(e);
  endpoint_barrier(e);
  free(e->peers);
  bootstrap_close(&e->bootstrap);
}
