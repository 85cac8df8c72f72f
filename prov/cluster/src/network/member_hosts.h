// The hosts of the address vector, for the process probe (link/process_probe.h): what it keeps for their questions others cannot use up.
// Looked at again when the address vector has changed.
#pragma once

#include <cstdint>

#include "link/process_probe.h"
#include "transport/address_table.h"

namespace cluster::network {

class MemberHosts {
 public:
  /// `probe` may be null.
  explicit MemberHosts(link::ProcessProbe* probe) : probe_(probe) {}

  void review(const transport::AddressTable& addresses);

 private:
  link::ProcessProbe* probe_;
  std::uint64_t generation_ = ~std::uint64_t{0};  ///< of the table at the last review
};

}  // namespace cluster::network
