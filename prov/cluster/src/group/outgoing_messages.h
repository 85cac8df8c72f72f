// The messages of one stream, on the sender's side. Each waits to be cut into the bodies of frames, is in
// progress, or is finished.
//
// Bodies hold segments of kind eager, eager_first and eager_next, as in a flow (wire/segment.h). Small
// waiting messages share a body; a long one fills several. The bytes of a message stay with the application
// until the last of them has been copied into a body.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "base/ring_queue.h"
#include "base/status.h"
#include "wire/segment.h"

namespace cluster::group {

/// Identifies a message to its sender.
using MessageToken = std::uint64_t;

/// When a message is complete for its sender.
enum class Until : std::uint8_t { copied, arrived, delivered };

struct FinishedMessage {
  MessageToken token = 0;
  Status status = Status::ok;
  SocketAddress culprit{};  ///< of a failure: the member that did not get the message
};

class OutgoingMessages {
 public:
  /// Appends a message. `shape` has its flags, tag and data. With `keep` the bytes are copied now; else they
  /// must stay valid until the message is cut. Takes all the memory that the message needs until it is
  /// reported; if it throws, the message is not taken.
  void post(const wire::Segment& shape, std::span<const ConstBytes> slices, std::size_t length, bool keep,
            Until until, MessageToken token);
  /// True if every message has been cut.
  bool all_cut() const { return waiting_.empty(); }
  /// True if the next body begins with a new message.
  bool between() const { return waiting_.empty() || waiting_.front().posted == 0; }
  /// Writes one body for the frame with sequence `end` - 1 and returns the body's size. 0: no message waits.
  std::size_t cut(Bytes body, std::uint64_t end);
  /// The listener will get nothing after `arrived`, so messages that end there fail with `why`.
  void fail(const SocketAddress& listener, std::uint64_t arrived, Status why);
  /// All listeners have everything before `arrived`, and have delivered everything before `delivered`.
  void advance(std::uint64_t arrived, std::uint64_t delivered);
  /// Ends every unfinished message with `why`.
  void abandon(Status why);

  /// True if a message has been cut and is not finished.
  bool under_way() const { return !under_way_.empty(); }
  RingQueue<FinishedMessage>& finished() { return finished_; }

 private:
  struct Waiting {
    wire::Segment shape;
    std::vector<ConstBytes> slices;
    std::unique_ptr<std::byte[]> kept;
    std::size_t length = 0;
    std::size_t posted = 0;
    Until until = Until::copied;
    MessageToken token = 0;
  };
  struct UnderWay {
    MessageToken token;
    std::uint64_t end;
    Until until;
    Status status = Status::ok;
    SocketAddress culprit{};
  };

  /// Writes one segment of a message. Returns 0 if the segment should wait for the next body.
  static std::size_t put(Waiting& message, Bytes out, bool first_in_body);

  RingQueue<Waiting> waiting_;
  RingQueue<UnderWay> under_way_;
  RingQueue<FinishedMessage> finished_;
};

}  // namespace cluster::group
