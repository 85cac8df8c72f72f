// One group of an endpoint: its membership, its socket, and the messages that are coming from members. What is done with them is
// decided in group_table.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "base/address.h"
#include "base/status.h"
#include "base/units.h"
#include "group/group.h"
#include "link/multicast.h"
#include "protocol/group_protocol.h"
#include "transport/peer_table.h"

namespace cluster::engine {

struct GroupEntry {
  /// The message whose segments are coming from a member.
  struct Incoming {
    std::uint32_t stream = 0;
    protocol::Assembly assembly;
  };

  std::uint64_t handle = 0;
  protocol::GroupProtocol::Content content = protocol::GroupProtocol::Content::application;
  std::unique_ptr<group::Group> group;
  std::unique_ptr<link::MulticastReceiver> socket;
  std::unordered_map<SocketAddress, Incoming, SocketAddressHash> incoming;
  bool joined = false;
  bool unreached = false;   ///< some member may have no carrier yet
  bool unfinished = false;  ///< the last turn left something that can be delivered
  bool unread = false;      ///< the socket has more
  std::size_t awaited = 0;  ///< operations that wait for something of it
  Time next_poll{};         ///< of the socket
  Duration poll_interval{};
  Time close_by = kNever;  ///< of one that is being left
  Time retry_at = kNever;  ///< of a turn that ended early for lack of memory

  /// True if it needs a turn. What members send, and what this side does, moves the deadline of the group or is news.
  bool due(Time now) const {
    return group->news().any() || now >= group->deadline() || now >= close_by || now >= retry_at;
  }
  void meet(Peer& peer);
  /// One more operation waits for the group, or (`waits` false) one less.
  void expect(bool waits);
  /// The socket was read: had something arrived, and may it have more?
  void note_poll(Time now, bool arrivals, bool more);
  /// Aborts messages whose stream has ended, because their member is gone or has begun anew.
  void drop_ended_streams(protocol::GroupProtocol& protocol);
  /// Aborts all messages.
  void drop_streams(protocol::GroupProtocol& protocol, Status status);
};

}  // namespace cluster::engine
