// The messages of one stream, on the sender's side: MessageCutter cuts them into the bodies of frames, MessageProgress
// knows how far each one is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "base/ring_queue.h"
#include "base/status.h"
#include "group/listener.h"
#include "wire/segment.h"

namespace cluster::group {

/// Bodies hold segments of kind eager, eager_first and eager_next, as in a flow (wire/segment.h). Small waiting messages
/// share a body, a long one fills as many as it needs. The bytes of a message stay with the application until the last of
/// them has been copied into a body.
class MessageCutter {
 public:
  /// What fill() has written.
  struct Body {
    std::size_t size = 0;
    std::size_t ended = 0;  ///< messages that end in it
  };

  /// Appends a message. `shape` has its flags, tag and data. With `keep` the bytes are copied now; else they must stay
  /// valid until fill() has counted the message as ended.
  void post(const wire::Segment& shape, std::span<const ConstBytes> slices, std::size_t length, bool keep);
  bool empty() const { return waiting_.empty(); }
  std::size_t size() const { return waiting_.size(); }
  /// True if the next body begins with a new message.
  bool between_messages() const { return waiting_.empty() || waiting_.front().posted == 0; }
  /// Writes one body; size 0: nothing waits. It never allocates.
  Body fill(Bytes body);

 private:
  struct Waiting {
    wire::Segment shape;
    std::vector<ConstBytes> slices;
    std::unique_ptr<std::byte[]> kept;
    std::size_t length = 0;
    std::size_t posted = 0;
  };

  /// Writes one segment of a message; returns 0 if it is better left to the next body.
  static std::size_t put(Waiting& message, Bytes out, bool first_in_body);

  RingQueue<Waiting> waiting_;
};

/// Names a message to its sender.
using MessageToken = std::uint64_t;

/// When a message is over for its sender.
enum class Until : std::uint8_t { copied, arrived, delivered };

struct FinishedMessage {
  MessageToken token = 0;
  Status status = Status::ok;
  SocketAddress culprit{};  ///< of a failure: the member that did not get the message
};

/// Each message waits to be cut, is under way, or is finished. Messages finish in the order in which they were posted.
/// reserve() takes all the memory that a message needs until it is reported.
class MessageProgress {
 public:
  /// Makes space for one more message. If it throws, nothing has changed.
  void reserve();
  /// After reserve().
  void posted(MessageToken token, Until until) { uncut_.push_back(std::pair(token, until)); }
  /// The oldest message that was not cut yet ends before the sequence `end`.
  void cut(std::uint64_t end);
  /// The listener never gets what it does not have by now.
  void fail(const Listener& listener, Status why);
  /// All listeners have everything before `arrived`, and have delivered everything before `delivered`.
  void advance(std::uint64_t arrived, std::uint64_t delivered);
  /// Every message that is not finished ends with `why`.
  void abandon(Status why);

  /// True if some message has been cut and is not finished.
  bool waits() const { return !under_way_.empty(); }
  RingQueue<FinishedMessage>& finished() { return finished_; }

 private:
  struct UnderWay {
    MessageToken token;
    std::uint64_t end;
    Until until;
    Status status = Status::ok;
    SocketAddress culprit{};
  };

  RingQueue<std::pair<MessageToken, Until>> uncut_;
  RingQueue<UnderWay> under_way_;
  RingQueue<FinishedMessage> finished_;
};

}  // namespace cluster::group
