// The messages of one stream, on the sender's side. Each message first waits until it is cut into bodies of
// frames, is then in flight, and is finally finished.
//
// Bodies contain segments of the kinds eager, eager_first and eager_next, as in a flow (wire/segment.h).
// Several small messages share a body; a long message fills several bodies. The bytes of a message remain in
// the application's buffer until they have been copied into bodies.
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

/// The event that completes a message for its sender.
enum class Until : std::uint8_t { copied, arrived, delivered };

struct FinishedMessage {
  MessageToken token = 0;
  Status status = Status::ok;
  SocketAddress culprit{};  ///< after a failure, the member that did not receive the message
};

class OutgoingMessages {
 public:
  /// Appends a message. `shape` contains its flags, tag and data. If `keep` is true, the bytes are copied
  /// now; otherwise they must stay valid until the message is cut. Allocates all the memory that the message
  /// needs until it is finished. If this function throws, nothing has changed.
  void post(const wire::Segment& shape, std::span<const ConstBytes> slices, std::size_t length, bool keep,
            Until until, MessageToken token);
  /// Returns true if every message has been cut.
  bool all_cut() const { return waiting_.empty(); }
  /// Returns true if the next body begins with a new message.
  bool between() const { return waiting_.empty() || waiting_.front().posted == 0; }
  /// Packs the next part of the waiting messages into the body of one frame. Returns the size of the body, or
  /// 0 if no message waits. `end`: the sequence number after that frame.
  std::size_t cut(Bytes body, std::uint64_t end);
  /// Called when a listener will not receive the frames whose sequence number is `arrived` or larger.
  /// Messages that have such frames, or will have them because they are cut only in part, fail with `why`.
  void fail(const SocketAddress& listener, std::uint64_t arrived, Status why);
  /// Called when all listeners have the frames before `arrived`, and have delivered the frames before
  /// `delivered`. Finishes the messages that have waited for these frames.
  void advance(std::uint64_t arrived, std::uint64_t delivered);
  /// Finishes every unfinished message with the status `why`.
  void abandon(Status why);

  /// Returns true if some message has been cut but is not finished.
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
    FinishedMessage result;
  };
  struct UnderWay {
    FinishedMessage result;
    std::uint64_t end;
    Until until;
  };

  /// Writes one segment of the message to `out`. Returns its size, or 0 if the message must wait for the next
  /// body.
  static std::size_t put(Waiting& message, Bytes out, bool first_in_body);

  RingQueue<Waiting> waiting_;
  RingQueue<UnderWay> under_way_;
  RingQueue<FinishedMessage> finished_;
};

}  // namespace cluster::group
