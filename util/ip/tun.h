// The interface of this node: a TUN device, whose packets this process reads and writes. It exists as long as its
// queues are open.
#pragma once

#include <string>
#include <vector>

#include "address.h"
#include "descriptor.h"

namespace cluster::ip {

struct TunSettings {
  std::string name;
  unsigned mtu = 0;
  unsigned queues = 1;
  std::vector<OwnAddress> addresses;
};

/// Makes the interface, gives it its addresses and sets it up. Returns its queues, which do not block.
/// Throws std::runtime_error with one line: cause and cure.
std::vector<Descriptor> open_tun(const TunSettings& settings);

}  // namespace cluster::ip
