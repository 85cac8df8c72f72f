// What a caller has to look at after frames and segments have come to a group: members whose streams may have something ready for
// delivery, and whether streams have ended. A large group is not walked through for the frames of one member.
#pragma once

#include <cstddef>
#include <utility>

#include "group/member_queue.h"

namespace cluster::group {

class News {
 public:
  /// So many members there are at most: to note one never needs memory, or what has come of it might lie there unseen.
  void reserve(std::size_t members) { members_.reserve(members); }
  /// Something has come for the member's stream, which there is.
  void note(Member& member) {
    if (!member.stream->front().empty()) members_.add(member);
  }
  /// The member is about to end.
  void forget(const Member& member) { members_.forget(member); }
  void note_end() { streams_ended_ = true; }

  /// Calls deliver(member) for each member that was noted; it returns true if something is left, and is called for that
  /// member again the next time.
  template <typename Deliver>
  void deliver(Deliver&& deliver) {
    members_.erase_if([&](Member& member) { return !deliver(member); });
  }
  bool any() const { return !members_.empty(); }
  /// Some stream has ended, or another has taken its place, since the last call.
  bool take_ends() { return std::exchange(streams_ended_, false); }

 private:
  MemberQueue members_;
  bool streams_ended_ = false;
};

}  // namespace cluster::group
