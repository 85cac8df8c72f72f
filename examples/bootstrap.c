#include "bootstrap.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { kSecondsMax = 30 };

static void fail(const char* what, const char* why) {
  fprintf(stderr, "%s: %s\n", what, why);
  exit(1);
}

static void check(int result, const char* what) {
  if (result < 0) fail(what, strerror(errno));
}

static struct addrinfo* resolve(const char* host_port, int passive) {
  char host[256];
  const char* colon = strrchr(host_port, ':');
  if (colon == NULL || colon == host_port || (size_t)(colon - host_port) >= sizeof host)
    fail(host_port, "is not HOST:PORT");
  memcpy(host, host_port, (size_t)(colon - host_port));
  host[colon - host_port] = 0;
  const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = passive ? AI_PASSIVE : 0};
  struct addrinfo* found = NULL;
  const int error = getaddrinfo(host, colon + 1, &hints, &found);
  if (error) fail(host_port, gai_strerror(error));
  return found;
}

/* Moves all bytes, and lets the idle function run while the other side is not ready. */
static void move(int socket, void* bytes, size_t left, short direction, bootstrap_idle* idle,
                 void* argument) {
  char* at = bytes;
  while (left > 0) {
    struct pollfd ready = {.fd = socket, .events = direction};
    const int count = poll(&ready, 1, idle ? 0 : -1);
    if (count < 0 && errno != EINTR) fail("poll", strerror(errno));
    if (count <= 0) {
      if (idle) idle(argument);
      continue;
    }
    const ssize_t part =
        direction == POLLIN ? recv(socket, at, left, 0) : send(socket, at, left, MSG_NOSIGNAL);
    if (part == 0) fail("bootstrap", "a process has ended before the others were done");
    if (part < 0 && errno != EINTR) fail("bootstrap: a process is lost", strerror(errno));
    if (part > 0) at += part, left -= (size_t)part;
  }
}

static void listen_for_all(struct bootstrap* b, const struct addrinfo* address) {
  const int one = 1;
  const int listener = socket(address->ai_family, SOCK_STREAM, 0);
  check(listener, "socket");
  check(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), "SO_REUSEADDR");
  check(bind(listener, address->ai_addr, address->ai_addrlen), "rank 0: bind to HOST:PORT");
  check(listen(listener, b->size), "listen");
  for (int i = 1; i < b->size; ++i) {
    struct pollfd ready = {.fd = listener, .events = POLLIN};
    if (poll(&ready, 1, kSecondsMax * 1000) == 0) fail("rank 0", "not all processes have connected");
    const int accepted = accept(listener, NULL, NULL);
    check(accepted, "accept");
    int rank = 0;
    move(accepted, &rank, sizeof rank, POLLIN, NULL, NULL);
    if (rank < 1 || rank >= b->size || b->sockets[rank] >= 0) fail("rank 0", "two processes have one rank");
    b->sockets[rank] = accepted;
  }
  close(listener);
}

static void connect_to_first(struct bootstrap* b, const struct addrinfo* address) {
  const time_t limit = time(NULL) + kSecondsMax;
  for (;;) { /* rank 0 may not listen yet */
    b->sockets[0] = socket(address->ai_family, SOCK_STREAM, 0);
    check(b->sockets[0], "socket");
    if (connect(b->sockets[0], address->ai_addr, address->ai_addrlen) == 0) break;
    if (errno != ECONNREFUSED || time(NULL) > limit) fail("connect to rank 0", strerror(errno));
    close(b->sockets[0]);
    poll(NULL, 0, 10);
  }
  move(b->sockets[0], &b->rank, sizeof b->rank, POLLOUT, NULL, NULL);
}

void bootstrap_open(struct bootstrap* b, int rank, int size, const char* host_port) {
  const int one = 1;
  b->rank = rank;
  b->size = size;
  b->sockets = malloc((size_t)size * sizeof *b->sockets);
  if (b->sockets == NULL) fail("malloc", strerror(ENOMEM));
  for (int i = 0; i < size; ++i) b->sockets[i] = -1;
  struct addrinfo* address = resolve(host_port, rank == 0);
  struct sockaddr_storage local;
  socklen_t length = address->ai_addrlen;
  memcpy(&local, address->ai_addr, length);
  if (rank == 0) {
    listen_for_all(b, address);
  } else {
    connect_to_first(b, address);
    length = sizeof local;
    check(getsockname(b->sockets[0], (struct sockaddr*)&local, &length), "getsockname");
  }
  freeaddrinfo(address);
  for (int i = 0; i < size; ++i) {
    if (b->sockets[i] >= 0) setsockopt(b->sockets[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  }
  const int error = getnameinfo((struct sockaddr*)&local, length, b->local_address, sizeof b->local_address,
                                NULL, 0, NI_NUMERICHOST);
  if (error) fail("local address", gai_strerror(error));
}

void bootstrap_exchange(struct bootstrap* b, const void* mine, void* all, size_t bytes, bootstrap_idle* idle,
                        void* argument) {
  char* const blocks = all;
  if (b->rank == 0) {
    memcpy(blocks, mine, bytes);
    for (int i = 1; i < b->size; ++i)
      move(b->sockets[i], blocks + (size_t)i * bytes, bytes, POLLIN, idle, argument);
    for (int i = 1; i < b->size; ++i)
      move(b->sockets[i], blocks, (size_t)b->size * bytes, POLLOUT, idle, argument);
  } else {
    memcpy(blocks, mine, bytes); /* move() takes no const bytes */
    move(b->sockets[0], blocks, bytes, POLLOUT, idle, argument);
    move(b->sockets[0], blocks, (size_t)b->size * bytes, POLLIN, idle, argument);
  }
}

void bootstrap_close(struct bootstrap* b) {
  for (int i = 0; i < b->size; ++i) {
    if (b->sockets[i] >= 0) close(b->sockets[i]);
  }
  free(b->sockets);
}
