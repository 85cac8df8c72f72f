// A sched_yield() that sleeps until a datagram has arrived. MPI libraries wait by polling, and at most yield: with this
// library before them (LD_PRELOAD), their ranks wait as those of MPI-MPC did over calls and interrupts.
#define _GNU_SOURCE
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

enum { most = 64, calls_per_search = 256 };
// The thread of the provider may take a datagram while a rank sleeps. Then the rank notices it after this
// time.
static const struct timespec longest = {.tv_nsec = 100000};

static nfds_t find_sockets(struct pollfd* found) {
  nfds_t count = 0;
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const int end = limit.rlim_cur < 1024 ? (int)limit.rlim_cur : 1024;
  for (int number = 0; number < end && count < most; ++number) {
    int type = 0;
    socklen_t length = sizeof type;
    if (getsockopt(number, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_DGRAM)
      found[count++] = (struct pollfd){.fd = number, .events = POLLIN};
  }
  return count;
}

int sched_yield(void) {
  static _Thread_local struct pollfd sockets[most];
  static _Thread_local nfds_t count;
  static _Thread_local unsigned calls;
  if (calls++ % calls_per_search == 0) count = find_sockets(sockets);
  ppoll(sockets, count, &longest, NULL);
  return 0;
}
