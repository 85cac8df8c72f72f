// For processors that have no implementation faster than the tables.
#include "wire/checksum.h"

namespace cluster::wire::fast {

std::span<const Implementation> implementations() { return {}; }

}  // namespace cluster::wire::fast
