// The measures of mpi_perf in which every rank of the job takes part, so that there may be more of them
// than processors. The ranks are those of MPI_COMM_WORLD.
#pragma once

#include "measurement.h"

namespace perf {

/// True of `barrier`, `ring` and `alltoall`.
bool is_crowd_measure(const std::string& measure);
/// Each rank does the same in a round. The figure is the mean time of one.
Benchmark crowd_work(const Item& item);

}  // namespace perf
