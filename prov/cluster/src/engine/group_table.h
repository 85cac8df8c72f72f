// The multicast groups of an endpoint. This table connects the protocol objects of group/ with the peers,
// carriers and sockets of the engine.
//
//   down   send() -> GroupProtocol (completions) -> SenderStream -> link, or carriers of members
//   up     run(): sockets of the groups -> Group -> ReceiverStream -> GroupProtocol (matching), in order
//          on_group_segment(): what members send over carriers (control segments, repairs), from Messenger
//
// To send to a group, the application passes the group's handle instead of a peer's handle. Each member is
// also a peer of this endpoint. When the group learns of a member, this endpoint opens a carrier to the
// member. When the peer is lost, the group loses the member. If the application has passed no list of the
// members (JoinOp::roster), a peer can become a member only if it is in the address vector, or if a transport
// vouches for it.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/address.h"
#include "base/status.h"
#include "base/units.h"
#include "engine/engine_parts.h"
#include "group/group.h"
#include "link/multicast.h"
#include "protocol/completion.h"
#include "protocol/group_protocol.h"
#include "transport/peer_reach.h"
#include "transport/peer_table.h"
#include "transport/waiter.h"

namespace cluster::engine {

/// Handles of groups have this bit set, and handles of peers do not.
inline constexpr std::uint64_t kGroupHandles = std::uint64_t{1} << 62;
inline constexpr bool is_group(std::uint64_t handle) { return (handle >> 62) == 1; }

struct JoinOp {
  SocketAddress address;  ///< an IP multicast address with a port
  std::uint64_t key = 0;  ///< the same on all members; distinguishes groups with the same address
  group::Role role;
  /// The names of the members; if empty, members find each other by announcements.
  std::vector<SocketAddress> roster = {};
  void* context = nullptr;  ///< passed to GroupListener
  /// Says whether the group transports messages of the application or of collective operations. For the
  /// application, GroupListener reports when the membership has begun. A team calls joined() instead.
  protocol::GroupProtocol::Content content = protocol::GroupProtocol::Content::application;
};

/// One group of an endpoint: its members, its socket, and the messages that are arriving from members.
struct GroupEntry {
  /// A message of which some segments have arrived from a member.
  struct Incoming {
    std::uint32_t stream = 0;
    protocol::Assembly assembly;
  };

  std::uint64_t handle = 0;
  void* context = nullptr;  ///< JoinOp::context
  protocol::GroupProtocol::Content content = protocol::GroupProtocol::Content::application;
  std::unique_ptr<group::Group> group;
  std::unique_ptr<link::MulticastReceiver> socket;
  std::unordered_map<SocketAddress, Incoming, SocketAddressHash> incoming;
  bool joined = false;
  bool unreached = false;   ///< at least one member may have no carrier yet
  bool unfinished = false;  ///< the last turn did not deliver all data that can be delivered
  bool unread = false;      ///< the socket may hold more frames
  std::size_t awaited = 0;  ///< the number of operations that wait for messages of the group
  Time next_poll{};         ///< when to read the socket next
  Duration poll_interval{};
  /// If this endpoint is leaving the group, the time at which the group is closed even if work is left.
  Time close_by = kNever;

  /// Returns true if the group needs a turn. An arrival from a member, or an action of this side, changes the
  /// group's deadline or adds to the group's news. So these two show whether there is work.
  bool due(Time now) const { return group->news().any() || now >= group->deadline() || now >= close_by; }
  void meet(Peer& peer);
  /// Counts one more operation that waits for the group or, if `waits` is false, one fewer.
  void expect(bool waits);
  /// Called after the socket was read. `arrivals`: frames for this group were read. `more`: the socket may
  /// hold more frames.
  void note_poll(Time now, bool arrivals, bool more);
  /// Aborts incomplete messages whose stream has ended because the member is gone or has restarted.
  void drop_ended_streams(protocol::GroupProtocol& protocol);
  void drop_streams(protocol::GroupProtocol& protocol, Status status);
};

class GroupTable final : public protocol::GroupArrivals, private transport::WakeSource {
 public:
  GroupTable(const EngineParts& parts, const transport::TransportContext& context)
      : parts_(parts),
        peers_(context.peers),
        messenger_(context.messenger),
        reach_(context.reach),
        waiter_(context.waiter),
        outage_(context.outage),
        protocol_(context.messenger) {}

  /// Joins a group. Returns `ok` if joining has begun; GroupListener reports later that the membership has
  /// begun. If the call throws, the group is not joined.
  Status join(const JoinOp& op, std::uint64_t& handle);
  /// Begins to leave the group. Messages already sent to the group still arrive.
  Status leave(std::uint64_t handle);
  Status send(const protocol::SendOp& op);
  bool joined(std::uint64_t handle);
  /// Counts one more operation that waits for the group or, if `waits` is false, one fewer.
  void expect(std::uint64_t handle, bool waits);

  bool active() const { return !groups_.empty(); }
  /// Takes one turn of all groups. Returns true if something has arrived.
  bool run();
  /// Returns true if messages wait in the streams for a matching receive or for space in the unexpected
  /// store.
  bool holding() const { return holding_; }
  void deliver_held();
  Time deadline() const;
  bool quiescent() const;

  void on_group_segment(protocol::Channel& channel, const wire::Segment& segment,
                        ConstBytes payload) override;
  void on_carrier_left(protocol::Channel& channel) override;
  void on_channel_failed(protocol::Channel& channel, Status status) override;

 private:
  /// Called when the socket of a group has woken a thread. The next turn must read the socket, even if the
  /// next poll of the socket is not due yet.
  void on_ready(bool trouble) override;
  GroupEntry* find(std::uint64_t handle);
  std::size_t receive(Time now, GroupEntry& entry);
  std::size_t receive_frames(Time now, GroupEntry& entry, const link::InFrame& frame);
  bool receive_frame(Time now, GroupEntry& entry, const wire::FrameView& view, const link::InFrame& frame);
  void reach_members(GroupEntry& entry);
  /// Delivers at most `bodies` segments from a member. (The body of a frame contains one segment or several.)
  /// Returns true if more data is left.
  bool deliver(GroupEntry& entry, group::Member& member, std::size_t bodies);
  void turn(Time now, GroupEntry& entry);
  void take_turn(Time now, GroupEntry& entry);
  void turn_now(GroupEntry& entry);
  void report(GroupEntry& entry);
  /// Closes a group that this endpoint is leaving. Returns false if the completions of its messages cannot be
  /// reported yet.
  bool close(Time now, GroupEntry& entry);

  const EngineParts& parts_;
  PeerTable& peers_;
  protocol::Messenger& messenger_;
  transport::PeerReach& reach_;
  transport::Waiter& waiter_;
  const Outage& outage_;
  protocol::GroupProtocol protocol_;
  std::vector<std::unique_ptr<GroupEntry>> groups_;
  std::uint64_t opened_ = 0;  ///< the number of groups opened so far
  bool holding_ = false;
};

}  // namespace cluster::engine
