// The membership of one endpoint in one group: the other members, a stream towards them, and a stream from
// each of them (docs/protocol.md 9).
//
// Messages travel by multicast. Everything else travels in segments over the carriers between the members
// (flows, rings inside a node). Carriers are reliable, so this class retransmits only multicast frames.
//
// The caller passes in time, frames, segments and carriers. It calls run() after each event and at
// deadline(), takes what the streams deliver, and reads events(). The group itself calls only carriers and
// the link. A turn serves only members for which something arrived. It serves all members only when a
// deadline has passed: otherwise, in a group of a thousand, each segment would cost a look at all others.
//
// State: kStreamWindow frames for the messages of this endpoint, kStreamWindow frames for each member that
// sends, some 300 bytes for each other member, and the bodies that SpareBodies keeps.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/address.h"
#include "base/environment.h"
#include "base/ring_queue.h"
#include "carrier/carrier.h"
#include "group/limits.h"
#include "group/member.h"
#include "group/sender_stream.h"
#include "link/link.h"
#include "wire/admit.h"

namespace cluster::group {

struct GroupSettings {
  std::uint64_t key = 0;  ///< the same at all members
  link::Path path;        ///< the address of the group
  Role role;
  std::vector<SocketAddress> roster = {};  ///< the other members; empty: announcements find them
  std::size_t body_max = 0;                ///< of frames
  std::uint64_t incarnation = 0;           ///< orders the memberships of one name
  Duration silence_max{5s};                ///< a member that does not answer for this long is removed
};

struct GroupEvent {
  enum class Kind : std::uint8_t {
    left,      ///< it said that it leaves
    removed,   ///< it did not answer, so this side removed it
    expelled,  ///< it removed this side, because this side did not answer
    unicast,   ///< multicast does not reach it
  };
  Kind kind = Kind::left;
  SocketAddress member{};
};

/// Announces a member by multicast if no roster names it: a few times in quick succession, then rarely.
class Announcer {
 public:
  explicit Announcer(std::uint64_t key) : key_(key) {}

  /// Sends an announcement if one is due. `members`: the number of known members.
  void run(Time now, link::Link& link, const link::Path& group, std::size_t members);
  Time deadline() const { return next_; }
  /// True if the members that were already there have had time to answer.
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
  /// Introduces this side to a member once a carrier leads to it (`carrier` null: not yet).
  Member& meet(const SocketAddress& name, void* owner, carrier::Carrier* carrier);
  void lose(Member& member, Status why);
  /// True if every member of the roster has met this one. Without a roster: every known member, once the
  /// members that were there have had time to answer.
  bool complete() const;
  template <typename Visit>
  void each(Visit&& visit) {
    for (auto& [name, member] : members_) visit(*member);
  }

  // --- arrivals ---
  /// Takes in a segment of the group from a member. Returns false if the caller must answer with a group_end.
  bool on_segment(Time now, Member& member, const wire::Segment& segment, ConstBytes payload);
  /// The caller has taken bytes from a member's stream.
  void on_delivery(Member& member) { add_once(touched_, member); }
  News& news() { return news_; }
  /// Takes in a frame of kind group. `age`: how long the frame waited unread. Returns false if it comes from
  /// no member.
  bool on_frame(Time now, const wire::FrameView& view, const SocketAddress& from, Duration age);

  SenderStream& stream() { return stream_; }
  /// Ends the messages of this side. Tells the members as soon as they have all of them.
  void leave() {
    leaving_ = true;
    if (settings_.role.sends) stream_.end();
    next_service_ = {};
  }
  bool leaving() const { return leaving_; }
  bool left() const { return leaving_ && members_.empty() && stream_.drained(); }

  /// Sends what is due. Returns false if nothing was posted to any member. `link` is null without multicast.
  /// `unread`: the group has not received all frames that have arrived, so it reports nothing as missing.
  bool run(Time now, link::Link* link, bool unread = false);
  /// Call it if run() has thrown for lack of memory: the next run() continues.
  void take_up() { next_service_ = {}; }
  /// Call it after run(). Calls visit(member) for each member to whose carrier something was posted. A member
  /// that has left is kept until then, because its carrier sends the group_leave only once the caller has
  /// marked it.
  template <typename Visit>
  void take_posted(Visit&& visit) {
    for (Member* const member : posted_) {
      if (member->posted) visit(*member);  // may throw; the rest stays
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
  SpareBodies spare_bodies_;  ///< shared by all streams to this side
  Announcer announcer_;
  std::unordered_map<SocketAddress, std::unique_ptr<Member>, SocketAddressHash> members_;
  // meet() makes space in these for all members, so that to add one never allocates.
  MemberList touched_;  ///< the next run() serves these
  MemberList posted_;
  News news_;
  RingQueue<GroupEvent> events_;
  bool leaving_ = false;
  Time next_service_{};  ///< when a member is due besides the touched ones
};

}  // namespace cluster::group
