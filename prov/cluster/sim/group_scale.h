// Measures what it costs when one member of a large group sends to all others. The members are those of
// group_host.h; it knows
// nothing of engines, whose hosts measure.h has.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/measure.h"

namespace cluster::sim {

/// One message of so many bytes, with one frame in a hundred lost at each receiver. There are no ports, so what a port could be
/// filled to is not measured, nor is a stall; retransmitted are frames that went to all again.
Measured measure_group(std::uint32_t hosts, std::size_t size);

}  // namespace cluster::sim
