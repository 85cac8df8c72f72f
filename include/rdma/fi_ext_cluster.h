/* Extension of the libfabric provider "cluster": statistics of an endpoint.
 *
 *     struct fi_cluster_ops_stats *stats;
 *     fi_open_ops(&ep->fid, FI_CLUSTER_STATS, 0, (void **)&stats, NULL);
 *
 * fi_open_ops returns -FI_ENOSYS for endpoints of other providers. Later versions only append to the
 * table: compare `size` before using a function that a later version added.
 */
#ifndef FI_EXT_CLUSTER_H
#define FI_EXT_CLUSTER_H

#include <rdma/fi_endpoint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FI_CLUSTER_STATS "cluster stats"

struct fi_cluster_counter {
  const char* name; /* for example "frames_sent"; the meaning of a name never changes */
  const char* help; /* what one unit is */
  uint64_t value;   /* since the endpoint was opened */
};

struct fi_cluster_ops_stats {
  size_t size;

  /* Fills at most `count` entries, all read at the same moment, and returns how many counters
	 * there are; `counters` may be NULL if `count` is 0. A negative result is an error. */
  ssize_t (*counters)(struct fid_ep* ep, struct fi_cluster_counter* counters, size_t count);

  /* Sets `path` to "shm", "packet", "udp", "verbs" or "self", or to "none" if no path to the peer has been
	 * opened yet. "verbs" means that a path between RDMA devices works now; frames use the other paths, too.
	 * The string is static. Returns -FI_EINVAL if the address is not in the address vector. */
  int (*path)(struct fid_ep* ep, fi_addr_t peer, const char** path);
};

/* The event queue of an endpoint gets an FI_SHUTDOWN event for each peer that is lost. In this event, struct
 * fi_cluster_peer_lost follows struct fi_eq_cm_entry: read both with one call of fi_eq_read. A lost peer can
 * come back later. */
struct fi_cluster_peer_lost {
  fi_addr_t peer;        /* FI_ADDR_NOTAVAIL if the peer is not in the address vector */
  int32_t err;           /* for example FI_ECONNRESET, FI_ECONNREFUSED, FI_EHOSTUNREACH, FI_ETIMEDOUT */
  int32_t prov_errno;    /* for fi_cq_strerror */
  uint32_t address_size; /* bytes of `address`, which is a struct sockaddr */
  uint8_t address[28];
  char cause[64];
};

#ifdef __cplusplus
}
#endif

#endif
