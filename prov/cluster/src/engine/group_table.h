// The groups of an endpoint. They connect the protocol objects of group/ with the peers, carriers and sockets
// of the engine.
//
//   down   send() -> GroupProtocol (what completes) -> SenderStream -> link, or carriers of members
//   up     run(): sockets of the groups -> Group -> ReceiverStream -> GroupProtocol (matching), in order
//          on_group_segment(): what members say over their carriers, from Messenger
//
// In sends, a group's handle takes the place of a peer's handle. Members are peers like others: each is
// reached as soon as it is met, and a member whose peer is lost is lost to the group. Without a roster, only
// peers in the address vector are met.
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

/// Handles of groups have this bit; handles of peers do not.
inline constexpr std::uint64_t kGroupHandles = std::uint64_t{1} << 62;
inline constexpr bool is_group(std::uint64_t handle) { return (handle >> 62) == 1; }

struct JoinOp {
  SocketAddress address;  ///< of IP multicast, with a port
  std::uint64_t key = 0;  ///< the same at all members; distinguishes groups of one address
  group::Role role;
  std::vector<SocketAddress> roster = {};  ///< names of the members; empty: members find each other
  void* context = nullptr;                 ///< for GroupListener
  /// GroupListener tells the application that it is a member. A team asks joined().
  protocol::GroupProtocol::Content content = protocol::GroupProtocol::Content::application;
};

/// One group of an endpoint: its membership, its socket, and the messages that are arriving from members.
struct GroupEntry {
  /// The message whose segments are arriving from a member.
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
  bool unreached = false;   ///< a member may have no carrier yet
  bool unfinished = false;  ///< the last turn left data that can be delivered
  bool unread = false;      ///< the socket has more frames
  std::size_t awaited = 0;  ///< operations that wait for the group
  Time next_poll{};         ///< when to read the socket next
  Duration poll_interval{};
  Time close_by = kNever;  ///< the latest time to end a group that is being left

  /// Returns true if the group needs a turn. Arrivals from members and actions of this side move its deadline
  /// or make news.
  bool due(Time now) const { return group->news().any() || now >= group->deadline() || now >= close_by; }
  void meet(Peer& peer);
  /// One more operation waits for the group, or (`waits` false) one less.
  void expect(bool waits);
  /// The socket was read. `arrivals`: it had frames. `more`: it may have further ones.
  void note_poll(Time now, bool arrivals, bool more);
  /// Aborts messages whose stream has ended, because their member is gone or has restarted.
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
        protocol_(context.messenger) {}

  /// Joins a group. Returns `ok`; GroupListener is called when the membership has begun. If it throws, there
  /// is no membership.
  Status join(const JoinOp& op, std::uint64_t& handle);
  /// Leaves the group. Messages that were sent still reach all members.
  Status leave(std::uint64_t handle);
  Status send(const protocol::SendOp& op);
  bool joined(std::uint64_t handle);
  /// One more operation waits for the group, or (`waits` false) one less.
  void expect(std::uint64_t handle, bool waits);

  bool active() const { return !groups_.empty(); }
  /// Takes one turn of all groups. Returns true if something arrived. Marks peers for transmission if
  /// segments were posted to them.
  bool run();
  /// Messages wait in streams until a receive is posted for them, or there is space in the unexpected store.
  bool holding() const { return holding_; }
  void deliver_held();
  Time deadline() const;
  bool quiescent() const;

  void on_group_segment(protocol::Channel& channel, const wire::Segment& segment,
                        ConstBytes payload) override;
  void on_carrier_left(protocol::Channel& channel) override;
  void on_channel_failed(protocol::Channel& channel, Status status) override;

 private:
  /// A group's socket has woken a thread, so it must be read now, however rarely it was read before.
  void on_ready(bool trouble) override;
  GroupEntry* find(std::uint64_t handle);
  std::size_t receive(Time now, GroupEntry& entry);
  std::size_t receive_frames(Time now, GroupEntry& entry, const link::InFrame& frame);
  bool receive_frame(Time now, GroupEntry& entry, const wire::FrameView& view, const link::InFrame& frame);
  void reach_members(GroupEntry& entry);
  /// Delivers at most `bodies` bodies. Returns true if more data is left.
  bool deliver(GroupEntry& entry, group::Member& member, std::size_t bodies);
  void turn(Time now, GroupEntry& entry);
  void take_turn(Time now, GroupEntry& entry);
  void turn_now(GroupEntry& entry);
  void report(GroupEntry& entry);
  /// False: the end of its messages cannot be reported yet.
  bool close(Time now, GroupEntry& entry);

  const EngineParts& parts_;
  PeerTable& peers_;
  protocol::Messenger& messenger_;
  transport::PeerReach& reach_;
  transport::Waiter& waiter_;
  protocol::GroupProtocol protocol_;
  std::vector<std::unique_ptr<GroupEntry>> groups_;
  std::uint64_t opened_ = 0;  ///< groups opened so far
  bool holding_ = false;
};

}  // namespace cluster::engine
