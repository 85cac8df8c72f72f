// Messages to and from groups, above the streams of group/. It completes messages that this side sends, and
// matches those that arrive. To a receive, a message from a group is one from its sender. It takes no credit:
// the window of its stream limits what is in flight. A message that is too long for the unexpected store
// stays in the stream, with all behind it, until a receive for it is posted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/address.h"
#include "base/pool.h"
#include "protocol/messenger.h"

namespace cluster::protocol {

/// The longest message from a group that is kept without a receive.
inline constexpr std::size_t kGroupUnexpectedMax = std::size_t{16} << 20;

class GroupProtocol : MessengerParts {
 public:
  explicit GroupProtocol(const Messenger& messenger)
      : MessengerParts(messenger.parts()), sends_(context_.settings.tx_requests_max) {}

  // --- sender ---
  /// Remembers a message that was posted to a stream, and returns its token. Returns 0 if there are too many.
  std::uint64_t begin(const SendOp& op);
  /// Forgets a message that the stream has not taken.
  void withdraw(std::uint64_t token);
  /// It is as far as its completion level asks for, or did not reach `culprit`.
  void finish(std::uint64_t token, Status status, const SocketAddress& culprit);
  /// Returns the message as a segment, without the fields that depend on how it is cut.
  static wire::Segment shape_of(const SendOp& op);

  // --- receiver: `assembly` is that of the stream the segment came in ---
  /// Which messages a stream carries. A segment that begins a message of the other kind is refused at once.
  enum class Content : std::uint8_t { application, collectives };
  /// Returns false if the segment has to wait until a receive is posted.
  bool ready(Channel& channel, const wire::Segment& segment, Content content);
  void arrive(Channel& channel, Assembly& assembly, const wire::Segment& segment, ConstBytes payload,
              Content content);
  /// The stream has ended in the middle of a message.
  void abort(Assembly& assembly, Status status);

 private:
  struct GroupSend {
    std::uint32_t id = 0;
    SendOp op;
  };

  Pool<GroupSend> sends_;
};

}  // namespace cluster::protocol
