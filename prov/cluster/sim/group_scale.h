// Measures what it costs when one member of a large group sends to all others. The members are hosts of
// group_host.h, which have no engines (measure.h measures engines).
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/measure.h"

namespace cluster::sim {

/// Sends one message of `size` bytes, while each receiver loses one frame in a hundred. The network has no
/// ports, so losses and stalls are not measured. `retransmitted` counts the frames that were sent to all
/// once more.
Measured measure_group(std::uint32_t hosts, std::size_t size);

}  // namespace cluster::sim
