// The state that one member of a group keeps for another member. The state contains what the other member has
// announced, what must still be sent to that member, and the streams between the two. Only Group changes this
// state. Lists of members for Group and its caller follow below.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "carrier/carrier.h"
#include "group/kept_frames.h"
#include "group/receiver_stream.h"
#include "wire/frame.h"
#include "wire/segment.h"

namespace cluster::group {

/// Says whether a member sends and whether it receives. A group_join contains both as bits.
struct Role {
  bool sends = true;
  bool receives = true;

  std::uint64_t bits() const { return (sends ? 1u : 0u) | (receives ? 2u : 0u); }
  static Role of(std::uint64_t bits) { return {(bits & 1) != 0, (bits & 2) != 0}; }
};

/// Reassembles a body that a member sends in parts (group_repair), because the path from that member carries
/// only shorter frames. Keeps at most one body. The first part of another body replaces the kept body. Any
/// other part that does not continue the kept body is dropped, and the receiver reports the frame as missing
/// again.
class RepairParts {
 public:
  /// Adds a part. Returns the whole body if this part completes it, and otherwise an empty span. The result
  /// is valid until the next call.
  ConstBytes add(const wire::Segment& part, ConstBytes bytes) {
    if (part.peer_id == 0 && part.total == bytes.size()) return bytes;
    const bool continues = part.id == stream_ && part.offset == sequence_ && part.peer_id == body_.size();
    if (part.peer_id != 0 && !continues) return {};
    if (part.total > wire::kFrameMax || part.peer_id + bytes.size() > part.total) return {};
    if (part.peer_id == 0) body_.clear();
    stream_ = part.id;
    sequence_ = part.offset;
    body_.insert(body_.end(), bytes.begin(), bytes.end());
    return body_.size() == part.total ? ConstBytes(body_) : ConstBytes();
  }

 private:
  std::uint32_t stream_ = 0;
  std::uint64_t sequence_ = 0;
  std::vector<std::byte> body_;
};

/// Except for name, carrier and posted, the fields of the base class Listener are used only as long as the
/// member receives the stream of this side.
struct Member : Listener {
  static constexpr std::uint64_t kNoEnd = ~std::uint64_t{0};

  void* owner = nullptr;  ///< pointer for the caller of Group
  bool join_due = true;
  std::optional<Role> role;  ///< set once the member's join has arrived
  std::uint64_t incarnation = 0;
  std::uint32_t stream_id = 0;
  std::unique_ptr<ReceiverStream>
      stream;  ///< set once the member, as a sender, has announced the start of its stream
  /// The membership that the member announced at the start of the stream.
  std::uint64_t stream_membership = 0;
  RepairParts repair;                 ///< parts of repairs for `stream`
  std::uint64_t stream_end = kNoEnd;  ///< sequence number after the last frame of the stream
  bool absent = false;                ///< the member has answered that it is not, or not yet, in the group
  /// The member has left. Group forgets the member once all its messages are delivered.
  bool gone = false;
};

/// A list without duplicates.
using MemberList = std::vector<Member*>;

inline void add_once(MemberList& list, Member& member) {
  if (std::ranges::find(list, &member) == list.end()) list.push_back(&member);
}

/// The members whose streams have data for the caller. With this list, the caller need not search all members
/// of a large group.
class News {
 public:
  void reserve(std::size_t members) { members_.reserve(members); }
  /// Called after data has arrived in the member's stream. The stream must exist.
  void note(Member& member) {
    if (!member.stream->front().empty()) add_once(members_, member);
  }
  void forget(const Member& member) { std::erase(members_, &member); }
  void note_end() { streams_ended_ = true; }

  /// Calls deliver(member) for each noted member. If deliver() returns true, the member remains in the list
  /// for the next call.
  template <typename Deliver>
  void deliver(Deliver&& deliver) {
    std::erase_if(members_, [&](Member* member) { return !deliver(*member); });
  }
  bool any() const { return !members_.empty(); }
  /// Returns true if a stream has begun, ended or been replaced since the last call.
  bool take_ends() { return std::exchange(streams_ended_, false); }

 private:
  MemberList members_;
  bool streams_ended_ = false;
};

}  // namespace cluster::group
