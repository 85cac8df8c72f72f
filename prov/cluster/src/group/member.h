// Another member of a group, as one member sees it: what it has said of itself, what it has to be sent, and the streams
// between the two. Group changes it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/address.h"
#include "carrier/carrier.h"
#include "group/listener.h"
#include "group/receiver_stream.h"
#include "group/repair_parts.h"

namespace cluster::group {

/// What a member does in a group; as it travels in group_join.
struct Role {
  bool sends = true;
  bool receives = true;

  std::uint64_t bits() const { return (sends ? 1u : 0u) | (receives ? 2u : 0u); }
  static Role of(std::uint64_t bits) { return {(bits & 1) != 0, (bits & 2) != 0}; }
};

struct Member {
  static constexpr std::uint64_t kNoEnd = ~std::uint64_t{0};

  SocketAddress name;
  void* owner = nullptr;  ///< the caller's
  carrier::Carrier* carrier = nullptr;
  bool posted = false;  ///< to the carrier, which the caller then marks (Group::take_posted)
  bool join_due = true;
  std::optional<Role> role;  ///< once its join has come
  std::uint64_t incarnation = 0;
  std::uint32_t stream_id = 0;
  Listener listener;                       ///< while it receives from this side
  std::unique_ptr<ReceiverStream> stream;  ///< while it sends to this side, once it has said where it starts
  std::uint64_t stream_membership = 0;     ///< of the member, as it named it where the stream began
  RepairParts repair;                      ///< of that stream
  std::uint64_t stream_end = kNoEnd;       ///< nothing comes from here on
  bool absent = false;                     ///< has answered that it is no member (yet)
  bool gone = false;                       ///< forgotten when what has arrived from it is delivered
};

}  // namespace cluster::group
