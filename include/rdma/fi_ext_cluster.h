/* What the provider "cluster" offers beyond libfabric's own interface. Found by
 *
 *     struct fi_cluster_ops_stats *insight;
 *     fi_open_ops(&ep->fid, FI_CLUSTER_STATS, 0, (void **)&insight, NULL);
 *
 * which answers -FI_ENOSYS where there is no such provider below. Tables only grow at their end:
 * compare `size` before using what a later version added.
 */
#ifndef FI_EXT_CLUSTER_H
#define FI_EXT_CLUSTER_H

#include <rdma/fi_endpoint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Looks into an endpoint: what it has counted, and which way its peers are reached. */
#define FI_CLUSTER_STATS "cluster stats"

struct fi_cluster_counter {
  const char* name; /* "frames_sent": never changes its meaning */
  const char* help; /* what one unit is */
  uint64_t value;   /* since the endpoint was opened */
};

struct fi_cluster_ops_stats {
  size_t size;

  /* Fills at most `count` entries, all of the same moment, and returns how many counters there
   * are; `counters` may be NULL if `count` is 0. Negative: an error. */
  ssize_t (*counters)(struct fid_ep* ep, struct fi_cluster_counter* counters, size_t count);

  /* Sets `path` to "shm", "packet", "udp" or "self", or to "none" while there is no way to the
   * peer yet. The text lives for ever. -FI_EINVAL if the address names nobody. */
  int (*path)(struct fid_ep* ep, fi_addr_t peer, const char** path);
};

#ifdef __cplusplus
}
#endif

#endif
