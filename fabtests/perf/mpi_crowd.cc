#include "mpi_crowd.h"

#define OMPI_SKIP_MPICXX  // the C interface only
#include <mpi.h>

#include <algorithm>
#include <memory>

namespace perf {
namespace {

constexpr int kRingTag = 4;

/// What each rank sends and receives, a block for each rank of the job.
struct Blocks {
  explicit Blocks(std::size_t block) : bytes(static_cast<int>(block)) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    out.assign(std::max<std::size_t>(block * static_cast<std::size_t>(ranks), 1), 'o');
    in = out;
  }

  int bytes;
  int rank = 0, ranks = 0;
  std::vector<char> out, in;
};

/// A message to the next rank, and one from the rank before, at once.
void pass_on(Blocks& blocks) {
  const int next = (blocks.rank + 1) % blocks.ranks, before = (blocks.rank + blocks.ranks - 1) % blocks.ranks;
  MPI_Sendrecv(blocks.out.data(), blocks.bytes, MPI_BYTE, next, kRingTag, blocks.in.data(), blocks.bytes,
               MPI_BYTE, before, kRingTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void exchange_blocks(Blocks& blocks) {
  MPI_Alltoall(blocks.out.data(), blocks.bytes, MPI_BYTE, blocks.in.data(), blocks.bytes, MPI_BYTE,
               MPI_COMM_WORLD);
}

}  // namespace

bool is_crowd_measure(const std::string& measure) {
  return measure == "barrier" || measure == "ring" || measure == "alltoall";
}

Benchmark crowd_work(const Item& item) {
  const auto blocks = std::make_shared<Blocks>(item.bytes);
  Benchmark work;
  work.figure = Figure::round_us;
  work.mean = true;
  work.messages = blocks->ranks;
  if (item.measure == "barrier") {
    work.lead = [](std::uint64_t) { MPI_Barrier(MPI_COMM_WORLD); };
  } else if (item.measure == "ring") {
    work.lead = [blocks](std::uint64_t) { pass_on(*blocks); };
  } else {
    work.messages *= blocks->ranks;
    work.lead = [blocks](std::uint64_t) { exchange_blocks(*blocks); };
  }
  work.bytes = work.messages * static_cast<double>(item.bytes);
  work.follow = work.lead;
  return work;
}

}  // namespace perf
