// The membership of one endpoint in one group: the other members, a stream to them, and a stream from each of
// them (docs/protocol.md 9).
//
// Messages are sent by multicast, and so are the announcements in a group without a roster. Everything else
// is sent in segments over the carriers between the members (flows between nodes, rings inside a node):
// joins, reports, frames that only a few members miss, and messages to members that multicast does not reach.
// Carriers are reliable, so the group retransmits only what it has sent by multicast.
//
// The caller passes in time, frames, segments and carriers. It calls run() after each event and at
// deadline(), reads the delivered messages from the streams, and reads events(). The group itself calls only
// carriers and the link. Usually run() serves only the members from which something has arrived. Otherwise,
// in a group of a thousand members, each segment would require a check of all members. After a deadline, or
// if the stream of this side has sent segments or has new listeners, run() serves all members.
//
// A group needs memory for up to kStreamWindow frames of this endpoint, and for as many of each member that
// sends. In addition, the group needs about 300 bytes for each member, and the memory that SpareBodies keeps.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/address.h"
#include "base/environment.h"
#include "base/outage.h"
#include "base/ring_queue.h"
#include "carrier/carrier.h"
#include "group/limits.h"
#include "group/member.h"
#include "group/sender_stream.h"
#include "link/link.h"
#include "wire/admit.h"

namespace cluster::group {

struct GroupSettings {
  std::uint64_t key = 0;  ///< must be the same on all members
  link::Path path;        ///< the address of the group
  Role role;
  std::vector<SocketAddress> roster = {};  ///< the other members; if empty, announcements find them
  std::size_t body_max = 0;                ///< maximal length of the body of a frame
  std::uint64_t incarnation = 0;           ///< larger for each later membership of the same endpoint name
  Duration silence_max{20s};               ///< this side removes a member that does not answer for this long
  const Outage* outage = nullptr;          ///< silence in an outage does not count; must outlive the group
};

struct GroupEvent {
  enum class Kind : std::uint8_t {
    left,      ///< the member has announced that it leaves
    removed,   ///< this side has removed the member, because the member did not answer
    expelled,  ///< the member has removed this side, because this side did not answer
    unicast,   ///< multicast does not reach the member
  };
  Kind kind = Kind::left;
  SocketAddress member{};
};

/// Announces this member by multicast in a group without a roster: at first a few times at short intervals,
/// then rarely.
class Announcer {
 public:
  explicit Announcer(std::uint64_t key) : key_(key) {}

  /// Sends an announcement if one is due. `members`: the number of known members.
  void run(Time now, link::Link& link, const link::Path& group, std::size_t members);
  Time deadline() const { return next_; }
  /// Returns true once existing members have had time to answer.
  bool settled() const { return sent_ >= kAnnouncesFirst; }

 private:
  std::uint64_t key_;
  Time next_{};
  unsigned sent_ = 0;
};

class Group {
 public:
  Group(GroupSettings settings, std::uint32_t stream_id, Random& random);

  const GroupSettings& settings() const { return settings_; }

  Member* find(const SocketAddress& name);
  /// Returns the member with this name. Adds the member if there is none. Sets the owner and the carrier of
  /// the member. `carrier` may be null. This side sends its join to the member once the member has a carrier.
  Member& meet(const SocketAddress& name, void* owner, carrier::Carrier* carrier);
  void lose(Member& member, Status why);
  /// Returns true once this side and every member of the roster have exchanged their joins and starts.
  /// Without a roster, this must be true for every known member that is neither absent nor gone, and existing
  /// members must have had time to answer.
  bool complete() const;
  template <typename Visit>
  void each(Visit&& visit) {
    for (auto& [name, member] : members_) visit(*member);
  }

  // --- arrivals ---
  /// Processes a segment of the group from a member. Returns false if the caller must answer with a
  /// group_end.
  bool on_segment(Time now, Member& member, const wire::Segment& segment, ConstBytes payload);
  /// Called after the caller has taken bytes from the member's stream.
  void on_delivery(Member& member) { add_once(touched_, member); }
  News& news() { return news_; }
  /// Processes a frame of kind group. `age`: the time for which the frame waited unread. Returns false if no
  /// stream accepts the frame, for example because the sender is not a member.
  bool on_frame(Time now, const wire::FrameView& view, const SocketAddress& from, Duration age);

  SenderStream& stream() { return stream_; }
  /// Begins to leave the group. The caller must post no more messages. Once all members have received the
  /// messages of this side, the group tells them that this side leaves.
  void leave() {
    leaving_ = true;
    if (settings_.role.sends) stream_.end();
    next_service_ = {};
  }
  bool leaving() const { return leaving_; }
  bool left() const { return leaving_ && members_.empty() && stream_.drained(); }

  /// Sends everything that is due. Returns false if no member was served. `link`: null if there is no
  /// multicast. `unread`: true if arrived frames still wait to be read. If so, the group reports no frames as
  /// missing.
  bool run(Time now, link::Link* link, bool unread = false);
  /// Called if run() has thrown for lack of memory. Makes the next run() serve all members.
  void take_up() { next_service_ = {}; }
  /// Called after run(). Calls visit(member) for each member whose carrier has new segments. The caller marks
  /// these carriers, so that the engine sends the segments. Until this call, the group keeps members that
  /// have left, because otherwise the last segment to such a member would never be sent.
  template <typename Visit>
  void take_posted(Visit&& visit) {
    for (Member* const member : posted_) {
      if (member->posted) visit(*member);  // if visit() throws, the rest of the list remains
      member->posted = false;
    }
    posted_.clear();
  }
  Time deadline() const;
  RingQueue<GroupEvent>& events() { return events_; }

 private:
  void on_join(Member& member, const wire::Segment& segment);
  bool on_start(Member& member, const wire::Segment& segment);
  bool on_report(Time now, Member& member, const wire::Segment& segment);
  void on_end(Member& member, const wire::Segment& segment);
  void stop_sending_to(Member& member, Status why);
  bool serve(Time now, Member& member, bool unread);
  void forget_ended();
  void forget(const Member& member);

  GroupSettings settings_;
  Random& random_;
  SenderStream stream_;
  SpareBodies spare_bodies_;  ///< shared by all streams that this side receives
  Announcer announcer_;
  std::unordered_map<SocketAddress, std::unique_ptr<Member>, SocketAddressHash> members_;
  // meet() reserves space in the next three lists for all members, so that adding a member needs no memory.
  MemberList touched_;  ///< members that the next run() serves
  MemberList posted_;
  News news_;
  RingQueue<GroupEvent> events_;
  bool leaving_ = false;
  Time next_service_{};  ///< the time when run() must serve all members
};

}  // namespace cluster::group
