// What the tests of mpi_check share: the job, the sizes, the bytes of a message and how a wrong one is
// reported.
//
// Every message is filled from (sender, receiver, serial) so that a byte from another message, another place
// or another time is never taken for the right one. The first difference ends the job with a line that says
// where.
#ifndef CLUSTER_FABTESTS_MPI_CHECK_H
#define CLUSTER_FABTESTS_MPI_CHECK_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

enum { kSizeCount = 16, kSizeMax = 1 << 20 };

struct job {
  MPI_Comm comm;
  int rank;
  int size;
  int rounds;        // how often each test repeats its pattern
  const char* test;  // name of the running test
};

extern struct job job;

// Sizes just below, at and above the places where transports change their method.
extern const size_t kSizes[kSizeCount];

struct test {
  const char* name;
  void (*run)(void);
};

// Each ended by a NULL name.
extern const struct test kPointToPointTests[];
extern const struct test kMatchingTests[];
extern const struct test kSendModeTests[];
extern const struct test kPartitionedTests[];
extern const struct test kDatatypeTests[];
extern const struct test kCollectiveTests[];
extern const struct test kGroupTests[];
extern const struct test kIntercommunicatorTests[];
extern const struct test kWindowTests[];
extern const struct test kAccumulateTests[];
extern const struct test kRmaTests[];
extern const struct test kManyObjectTests[];

void* allocate(size_t bytes);

// Fills or compares `bytes` bytes of the message number `serial` from one rank to another.
void fill(void* buffer, size_t bytes, int from, int to, int serial);
void expect_bytes(const void* buffer, size_t bytes, int from, int to, int serial);

void expect_status(const MPI_Status* status, int source, int tag, size_t bytes);
void expect_equal(const char* what, long long got, long long wanted);

// Bytes and messages this rank has compared so far.
unsigned long long compared_bytes(void);
unsigned long long compared_messages(void);

#endif
