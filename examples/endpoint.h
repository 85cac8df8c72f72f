/* One endpoint, one registered piece of memory, and the addresses of both at all peers: what every
 * program opens before it begins. Read endpoint.c once from top to bottom; the examples
 * themselves show the operations.
 *
 * All memory that an operation touches, here or at the target, lies in the one arena. So it is registered
 * once, which providers with FI_MR_LOCAL demand for local buffers too, and `desc` describes every local
 * buffer.
 *
 * With FI_PROGRESS_MANUAL a process that is the target of others calls endpoint_progress() whenever it waits:
 * that costs no thread. A target that computes for long meanwhile asks for FI_PROGRESS_AUTO. */
#ifndef EXAMPLES_ENDPOINT_H
#define EXAMPLES_ENDPOINT_H

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap.h"

struct endpoint_options {
  uint64_t caps; /* 0: FI_RMA | FI_ATOMIC */
  size_t arena_bytes;
  enum fi_progress progress;
  enum fi_wait_obj wait; /* FI_WAIT_FD: poll() may wait for completions */
  uint64_t order;        /* FI_ORDER_SAS: messages from one peer match in the order of their sends */
};

struct endpoint {
  struct endpoint_options options;
  struct bootstrap bootstrap;
  int rank, size;
  struct fi_info* info;
  struct fid_fabric* fabric;
  struct fid_domain* domain;
  struct fid_cq* cq;
  struct fid_av* av;
  struct fid_ep* ep;
  struct fid_mr* mr;
  char* arena; /* the registered memory, zeroed; pages of a shared mapping, so that it can be mapped again */
  void* desc;  /* of every local buffer inside the arena */
  struct {     /* indexed by rank; one's own as well: an endpoint may address itself */
    fi_addr_t address;
    uint64_t base; /* remote address of the peer's arena */
    uint64_t key;
  } * peers;
  size_t outstanding; /* operations posted and not complete */
  unsigned empty_looks;
  /* Called for the remote completion data that a peer's write carried, if the program sets it. */
  void (*on_data)(struct endpoint* e, uint64_t data, void* argument);
  void* on_data_argument;
  /* Called for a message that has arrived in a posted receive. */
  void (*on_message)(struct endpoint* e, const struct fi_cq_tagged_entry* entry, void* argument);
  void* on_message_argument;
  /* Called for an operation of this process that is complete, if the program sets it. */
  void (*on_complete)(struct endpoint* e, const struct fi_cq_tagged_entry* entry, void* argument);
  void* on_complete_argument;
};

/* Reads RANK SIZE HOST:PORT, opens everything and exchanges addresses. Ends the program, with the reason,
 * on errors. */
void endpoint_open(struct endpoint* e, int argc, char** argv, const char* about,
                   struct endpoint_options options);
/* Flushes, and meets all others: after that no process is the target of another any more. */
void endpoint_close(struct endpoint* e);

/* Reads what completed: called wherever a program waits. True if there was anything. */
int endpoint_progress(struct endpoint* e);
/* A flush: returns when every operation posted so far is complete, which here means: done at its target. */
void endpoint_flush(struct endpoint* e);
/* All processes meet, and make progress meanwhile. */
void endpoint_barrier(struct endpoint* e);

/* Posts an operation: POST(e, fi_write(...)). The provider may be unable to take it now (-FI_EAGAIN):
 * progress changes that. */
#define POST(e, call) \
  do {                \
  } while (endpoint_retry((e), (call), #call))
int endpoint_retry(struct endpoint* e, ssize_t result, const char* call);
/* The same for a receive, which is not outstanding: no flush awaits it. */
#define POST_RECEIVE(e, call) \
  do {                        \
    POST(e, call);            \
    --(e)->outstanding;       \
  } while (0)

/* Ends the program unless `result` is >= 0. */
void must(ssize_t result, const char* tried);

/* What the processor of this process sees of a word that peers change. */
static inline uint64_t look(const uint64_t* word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }

#endif
