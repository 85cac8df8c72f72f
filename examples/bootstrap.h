/* What processes must know of each other before libfabric can help: one TCP connection from each to rank 0,
 * over which all exchange a few bytes. A launcher (PMI, PRRTE, a batch system) would do the same; examples
 * have none. */
#ifndef EXAMPLES_BOOTSTRAP_H
#define EXAMPLES_BOOTSTRAP_H

#include <stddef.h>

struct bootstrap {
  int rank, size;
  int* sockets;           /* rank 0: one for each other rank; others: sockets[0] leads to rank 0 */
  char local_address[64]; /* the address of this node by which rank 0 is reached */
};

/* What is called again and again while a process waits for the others; NULL: it sleeps. A program whose
 * peers may need its provider meanwhile passes a function that makes progress. */
typedef void bootstrap_idle(void* argument);

/* Connects all processes: rank 0 listens at HOST:PORT. These functions end the program, with the reason, on
 * errors. */
void bootstrap_open(struct bootstrap* b, int rank, int size, const char* host_port);
/* The `bytes` bytes of each process come to all, in the order of ranks. No process leaves before all have
 * entered: an exchange of one byte is a barrier. */
void bootstrap_exchange(struct bootstrap* b, const void* mine, void* all, size_t bytes, bootstrap_idle* idle,
                        void* argument);
void bootstrap_close(struct bootstrap* b);

#endif
