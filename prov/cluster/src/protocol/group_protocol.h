// Messages to and from groups, above the streams of group/: completions of what this side sends, and matching of what comes.
// To a receive a group's message is one of its sender's. It takes no credit: the window of its stream bounds what is
// under way, and a message that is too long for the unexpected store is left in the stream, with all behind it,
// until a receive for it is posted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/address.h"
#include "base/pool.h"
#include "protocol/messenger.h"

namespace cluster::protocol {

/// Longest message from a group that is kept without a receive.
inline constexpr std::size_t kGroupUnexpectedMax = std::size_t{16} << 20;

class GroupProtocol : MessengerParts {
 public:
  explicit GroupProtocol(const Messenger& messenger)
      : MessengerParts(messenger.parts()), sends_(context_.settings.tx_requests_max) {}

  // --- sender ---
  /// Remembers a message that was posted to a stream; 0: there are too many.
  std::uint64_t begin(const SendOp& op);
  /// The stream has not taken it: it is forgotten.
  void withdraw(std::uint64_t token);
  /// It is as far as its completion level asks for, or did not reach `culprit`.
  void finish(std::uint64_t token, Status status, const SocketAddress& culprit);
  /// The wire's form of it, without what depends on how it is cut.
  static wire::Segment shape_of(const SendOp& op);

  // --- receiver: `assembly` is that of the stream the segment came in ---
  /// Whose messages a stream has. One that begins any other is refused, and does not wait before.
  enum class Content : std::uint8_t { application, collectives };
  /// False: the segment has to wait until a receive is posted.
  bool ready(Channel& channel, const wire::Segment& segment, Content content);
  void arrive(Channel& channel, Assembly& assembly, const wire::Segment& segment, ConstBytes payload,
              Content content);
  /// The stream has ended inside of a message.
  void abort(Assembly& assembly, Status status);

 private:
  struct GroupSend {
    std::uint32_t id = 0;
    SendOp op;
  };

  Pool<GroupSend> sends_;
};

}  // namespace cluster::protocol
