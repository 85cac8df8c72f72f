#include "endpoint.h"

#include <sched.h>
#include <sys/mman.h>

enum { kNameMax = 256, kLooksBeforeYield = 64 };

void must(ssize_t result, const char* tried) {
  if (result >= 0) return;
  fprintf(stderr, "%s: %s\n", tried, fi_strerror((int)-result));
  exit(1);
}

/* The interface by which this process reached rank 0 is one by which its peers reach it. A provider whose
 * addresses are not those of IP is asked without. */
static void find_provider(struct endpoint* e) {
  struct fi_info* hints = fi_allocinfo();
  if (hints == NULL) must(-FI_ENOMEM, "fi_allocinfo");
  hints->caps = e->options.caps;
  hints->ep_attr->type = FI_EP_RDM;
  /* Keys and remote addresses are exchanged, local buffers registered: all of these are met. */
  hints->domain_attr->mr_mode =
      FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  hints->domain_attr->threading = FI_THREAD_DOMAIN; /* one thread uses it: no locks */
  hints->domain_attr->control_progress = e->options.progress;
  hints->domain_attr->data_progress = e->options.progress;
  /* A completion says that the operation is done at the target: what makes endpoint_flush() a flush. */
  if (e->options.caps & FI_RMA) hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
  hints->tx_attr->msg_order = hints->rx_attr->msg_order = e->options.order;
  const uint32_t version = FI_VERSION(1, 17);
  int error = fi_getinfo(version, e->bootstrap.local_address, NULL, FI_SOURCE, hints, &e->info);
  if (error == -FI_ENODATA) error = fi_getinfo(version, NULL, NULL, 0, hints, &e->info);
  must(error,
       "fi_getinfo: a provider with FI_EP_RDM, what the program needs, FI_DELIVERY_COMPLETE for one-sided "
       "calls (FI_PROVIDER "
       "names one)");
  fi_freeinfo(hints);
}

static void open_objects(struct endpoint* e) {
  must(fi_fabric(e->info->fabric_attr, &e->fabric, NULL), "fi_fabric");
  must(fi_domain(e->fabric, e->info, &e->domain, NULL), "fi_domain");
  struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .size = 1024, .wait_obj = e->options.wait};
  must(fi_cq_open(e->domain, &cq, &e->cq, NULL), "fi_cq_open");
  struct fi_av_attr av = {.type = FI_AV_TABLE, .count = (size_t)e->size};
  must(fi_av_open(e->domain, &av, &e->av, NULL), "fi_av_open");
  must(fi_endpoint(e->domain, e->info, &e->ep, NULL), "fi_endpoint");
  must(fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind of the completion queue");
  must(fi_ep_bind(e->ep, &e->av->fid, 0), "fi_ep_bind of the address vector");
  must(fi_enable(e->ep), "fi_enable");

  const size_t arena_bytes = e->options.arena_bytes;
  e->arena = mmap(NULL, arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (e->arena == MAP_FAILED) must(-FI_ENOMEM, "memory for the arena");
  const int one_sided = (e->options.caps & FI_RMA) != 0;
  const uint64_t access =
      one_sided ? FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE : FI_SEND | FI_RECV;
  const uint64_t wanted_key = 1; /* where the provider does not choose it */
  must(fi_mr_reg(e->domain, e->arena, arena_bytes, access, 0, wanted_key, 0, &e->mr, NULL), "fi_mr_reg");
  if (e->info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
    must(fi_mr_bind(e->mr, &e->ep->fid, 0), "fi_mr_bind");
    must(fi_mr_enable(e->mr), "fi_mr_enable");
  }
  e->desc = fi_mr_desc(e->mr);
}

/* What a peer must know: the endpoint's name, the key of its arena, and which address that has from
 * outside: its own address with FI_MR_VIRT_ADDR, and an offset, here 0, without. */
struct introduction {
  char name[kNameMax];
  uint64_t base, key;
};

static void introduce(struct endpoint* e) {
  struct introduction mine = {.key = fi_mr_key(e->mr)};
  if (e->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) mine.base = (uintptr_t)e->arena;
  size_t length = sizeof mine.name;
  must(fi_getname(&e->ep->fid, mine.name, &length), "fi_getname");
  struct introduction* all = calloc((size_t)e->size, sizeof *all);
  e->peers = calloc((size_t)e->size, sizeof *e->peers);
  if (all == NULL || e->peers == NULL) must(-FI_ENOMEM, "memory for addresses");
  bootstrap_exchange(&e->bootstrap, &mine, all, sizeof mine, NULL, NULL);
  for (int i = 0; i < e->size; ++i) {
    const int inserted = fi_av_insert(e->av, all[i].name, 1, &e->peers[i].address, 0, NULL);
    must(inserted == 1 ? 0 : -FI_EADDRNOTAVAIL, "fi_av_insert of a peer's address");
    e->peers[i].base = all[i].base;
    e->peers[i].key = all[i].key;
  }
  free(all);
}

void endpoint_open(struct endpoint* e, int argc, char** argv, const char* about,
                   struct endpoint_options options) {
  memset(e, 0, sizeof *e);
  e->options = options;
  if (options.caps == 0) e->options.caps = FI_RMA | FI_ATOMIC;
  char *rank_end = NULL, *size_end = NULL;
  e->rank = argc == 4 ? (int)strtol(argv[1], &rank_end, 10) : -1;
  e->size = argc == 4 ? (int)strtol(argv[2], &size_end, 10) : 0;
  if (e->rank < 0 || e->rank >= e->size || e->size > 1024 || *rank_end || *size_end) {
    fprintf(stderr,
            "usage: %s RANK SIZE HOST:PORT\n\n%s\n\nStart SIZE processes (at most 1024), on any nodes, with "
            "RANK 0 to "
            "SIZE - 1.\nRank 0 runs on HOST, where the others find it at PORT. FI_PROVIDER selects the "
            "provider.\n",
            argv[0], about);
    exit(2);
  }
  bootstrap_open(&e->bootstrap, e->rank, e->size, argv[3]);
  find_provider(e);
  if (e->rank == 0) printf("%d processes over %s\n", e->size, e->info->fabric_attr->prov_name);
  open_objects(e);
  introduce(e);
}

static void report_failure(struct endpoint* e) {
  struct fi_cq_err_entry entry = {0};
  char text[256];
  must(fi_cq_readerr(e->cq, &entry, 0), "fi_cq_readerr");
  fprintf(stderr, "rank %d: an operation has failed: %s (%s)\n", e->rank, fi_strerror(entry.err),
          fi_cq_strerror(e->cq, entry.prov_errno, entry.err_data, text, sizeof text));
  exit(1);
}

int endpoint_progress(struct endpoint* e) {
  struct fi_cq_tagged_entry entries[16];
  const ssize_t count = fi_cq_read(e->cq, entries, 16);
  if (count == -FI_EAVAIL) report_failure(e);
  if (count == -FI_EAGAIN) {
    /* With more processes than processors, the one that all wait for needs one. */
    if (++e->empty_looks % kLooksBeforeYield == 0) sched_yield();
    return 0;
  }
  must(count, "fi_cq_read");
  e->empty_looks = 0;
  for (ssize_t i = 0; i < count; ++i) {
    if (entries[i].flags & FI_REMOTE_CQ_DATA) {
      if (e->on_data) e->on_data(e, entries[i].data, e->on_data_argument);
    } else if (entries[i].flags & FI_RECV) {
      if (e->on_message) e->on_message(e, &entries[i], e->on_message_argument);
    } else {
      --e->outstanding;
      if (e->on_complete) e->on_complete(e, &entries[i], e->on_complete_argument);
    }
  }
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
  char mine = 0, all[1024];
  bootstrap_exchange(&e->bootstrap, &mine, all, 1, progress, e);
}

void endpoint_close(struct endpoint* e) {
  endpoint_flush(e);
  endpoint_barrier(e);
  must(fi_close(&e->mr->fid), "fi_close of the region");
  must(fi_close(&e->ep->fid), "fi_close of the endpoint");
  must(fi_close(&e->av->fid), "fi_close of the address vector");
  must(fi_close(&e->cq->fid), "fi_close of the completion queue");
  must(fi_close(&e->domain->fid), "fi_close of the domain");
  must(fi_close(&e->fabric->fid), "fi_close of the fabric");
  fi_freeinfo(e->info);
  munmap(e->arena, e->options.arena_bytes);
  free(e->peers);
  bootstrap_close(&e->bootstrap);
}
