// The other nodes as one queue sees them, and which of them owns an address.
#pragma once

#include <rdma/fabric.h>

#include <chrono>
#include <deque>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "address.h"
#include "order.h"

namespace cluster::ip {

using Clock = std::chrono::steady_clock;

/// What the context of a libfabric operation points to.
struct Operation {
  enum class Kind { buffer, packet, greeting } kind;
};

/// Takes messages one after the other until it is full.
struct Buffer;

/// A message in the buffer where it has arrived.
struct Arrival {
  Buffer* buffer = nullptr;
  std::span<const std::uint8_t> bytes;
};

struct Peer {
  std::string name;
  std::string node_address;
  fi_addr_t number = FI_ADDR_NOTAVAIL;
  bool up = false;         ///< it has greeted, and no greeting to it has failed since
  bool greeting = false;   ///< a greeting to it is on its way
  bool astray = false;     ///< a message to it has failed since the last greeting: numbers are missing
  std::string complained;  ///< the last line about it: a line is not repeated
  Clock::time_point next_greeting = {};
  std::size_t waiting_bytes = 0;  ///< sent, and not known to be at the peer
  std::vector<Address> addresses;
  std::uint32_t next_number = 0;  ///< of the next message to it
  Order<Arrival> order;           ///< of its messages

  bool needs_greeting() const { return (!up || astray) && !greeting; }
};

class Peers {
 public:
  /// `number`: one more than that of the peer before, beginning with 0, as an address vector gives them.
  Peer& add(const std::string& name, const std::string& node_address, fi_addr_t number);
  bool has(const std::string& node_address) const;

  /// nullptr for a number that is no peer's.
  Peer* with_number(fi_addr_t number) { return number < all_.size() ? &all_[number] : nullptr; }
  Peer* owner_of(const Address& address) const {
    const auto found = owners_.find(address);
    return found == owners_.end() ? nullptr : found->second;
  }
  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }

  /// From now on these addresses are the peer's, and no others. An address that another peer has stays there: returns
  /// that peer, or nullptr.
  const Peer* assign(Peer& peer, std::span<const Address> addresses);

 private:
  std::deque<Peer> all_;  ///< their places in memory stay
  std::unordered_map<Address, Peer*, HashAddress> owners_;
};

}  // namespace cluster::ip
