// Completes messages that this side sends to groups, and matches messages that arrive from groups. The
// streams of group/ carry these messages. For a receive, a message from a group is like any other message
// from the same sender. Messages of groups take no credit, because the window of the stream limits what is in
// flight. A message that is too long for the store of unexpected messages stays in the stream until a receive
// for it is posted. All messages behind it in the stream wait too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/address.h"
#include "base/pool.h"
#include "protocol/messenger.h"

namespace cluster::protocol {

/// The length of the longest message from a group that is stored while no receive matches it.
inline constexpr std::size_t kGroupUnexpectedMax = std::size_t{16} << 20;

class GroupProtocol : MessengerParts {
 public:
  explicit GroupProtocol(const Messenger& messenger)
      : MessengerParts(messenger.parts()), sends_(context_.settings.tx_requests_max) {}

  // --- sender ---
  /// Keeps track of a message to a group until finish(), and returns the token of the message. Returns 0 if
  /// too many such messages are in progress.
  std::uint64_t begin(const SendOp& op);
  /// Forgets a message that the stream has not taken.
  void withdraw(std::uint64_t token);
  /// Completes a message. Either it has reached its completion level, or it has failed because the member
  /// `culprit` did not get it.
  void finish(std::uint64_t token, Status status, const SocketAddress& culprit);
  /// Returns a segment in which only those fields are set that do not depend on how the stream splits the
  /// message.
  static wire::Segment shape_of(const SendOp& op);

  // --- receiver; `assembly`: the assembly of the stream in which the segment arrived ---
  /// The kind of messages that a stream carries. arrive() refuses a segment that begins a message of the
  /// other kind.
  enum class Content : std::uint8_t { application, collectives };
  /// Returns false if the segment has to wait until a receive is posted or the store of unexpected messages
  /// has capacity.
  bool ready(Channel& channel, const wire::Segment& segment, Content content);
  void arrive(Channel& channel, Assembly& assembly, const wire::Segment& segment, ConstBytes payload,
              Content content);
  /// Ends the message whose parts were still arriving when the stream ended.
  void abort(Assembly& assembly, Status status);

 private:
  struct GroupSend {
    std::uint32_t id = 0;
    SendOp op;
  };

  Pool<GroupSend> sends_;
};

}  // namespace cluster::protocol
