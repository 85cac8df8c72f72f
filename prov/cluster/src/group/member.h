// Another member of a group, as one member sees it: what it has said about itself, what must still be sent to
// it, and the streams between the two. Group changes it. The lists of members for Group and its caller follow
// below.
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

/// What a member does in a group. group_join carries it as bits.
struct Role {
  bool sends = true;
  bool receives = true;

  std::uint64_t bits() const { return (sends ? 1u : 0u) | (receives ? 2u : 0u); }
  static Role of(std::uint64_t bits) { return {(bits & 1) != 0, (bits & 2) != 0}; }
};

/// Reassembles a body that one member sends in parts (group_repair), because its path carries only shorter
/// frames. A part that does not continue the current body starts a new one, or is dropped and requested
/// again. So at most one body is kept.
class RepairParts {
 public:
  /// Adds a part. Returns the whole body if the part completes it, else nothing. Valid until the next call.
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

/// The Listener part counts while the member receives from this side.
struct Member : Listener {
  static constexpr std::uint64_t kNoEnd = ~std::uint64_t{0};

  void* owner = nullptr;  ///< belongs to the caller
  bool join_due = true;
  std::optional<Role> role;  ///< set once the member's join has arrived
  std::uint64_t incarnation = 0;
  std::uint32_t stream_id = 0;
  std::unique_ptr<ReceiverStream>
      stream;  ///< while the member sends to this side, once it has named the start of its stream
  std::uint64_t stream_membership = 0;  ///< the membership that the member named at the start of the stream
  RepairParts repair;                   ///< for that stream
  std::uint64_t stream_end = kNoEnd;    ///< the stream ends before this sequence
  bool absent = false;                  ///< the member has answered that it is not in the group (yet)
  bool gone = false;                    ///< forget the member once everything from it is delivered
};

/// Members in the order of their events, each once.
using MemberList = std::vector<Member*>;

inline void add_once(MemberList& list, Member& member) {
  if (std::ranges::find(list, &member) == list.end()) list.push_back(&member);
}

/// What the caller must look at after arrivals. With it, frames of one member need no walk through a large
/// group.
class News {
 public:
  void reserve(std::size_t members) { members_.reserve(members); }
  /// Data has arrived in the member's stream, which must exist.
  void note(Member& member) {
    if (!member.stream->front().empty()) add_once(members_, member);
  }
  void forget(const Member& member) { std::erase(members_, &member); }
  void note_end() { streams_ended_ = true; }

  /// Calls deliver(member) for each noted member. If that returns true, the member stays for the next call.
  template <typename Deliver>
  void deliver(Deliver&& deliver) {
    std::erase_if(members_, [&](Member* member) { return !deliver(*member); });
  }
  bool any() const { return !members_.empty(); }
  /// True if a stream has ended or been replaced since the last call.
  bool take_ends() { return std::exchange(streams_ended_, false); }

 private:
  MemberList members_;
  bool streams_ended_ = false;
};

}  // namespace cluster::group
