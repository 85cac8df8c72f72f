// Cuts the messages of one stream into the bodies of frames: segments of kind eager, eager_first and eager_next, as in a
// flow (wire/segment.h). Small messages that wait share a body, a long one fills as many as it needs; its bytes
// stay with the application until the last of them has been copied into a body.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/ring_queue.h"
#include "wire/segment.h"

namespace cluster::group {

class MessageCutter {
 public:
  /// What fill() has written.
  struct Body {
    std::size_t size = 0;
    std::size_t ended = 0;  ///< messages that end in it
  };

  /// Appends a message. `shape` has its flags, tag and data. With `keep` the bytes are copied now, else they stay
  /// valid until fill() has counted the message among those that ended.
  void post(const wire::Segment& shape, std::span<const ConstBytes> slices, std::size_t length, bool keep);
  bool empty() const { return waiting_.empty(); }
  std::size_t size() const { return waiting_.size(); }
  /// True if the next body begins with a message, not inside of one.
  bool between_messages() const { return waiting_.empty() || waiting_.front().posted == 0; }
  /// Writes one body; size 0: nothing waits. It takes no memory: a message that was written is not written again.
  Body fill(Bytes body);

 private:
  struct Waiting {
    wire::Segment shape;
    std::vector<ConstBytes> slices;
    std::unique_ptr<std::byte[]> kept;
    std::size_t length = 0;
    std::size_t posted = 0;
  };

  /// One segment of a message; 0: it is better left to the next body.
  static std::size_t put(Waiting& message, Bytes out, bool first_in_body);

  RingQueue<Waiting> waiting_;
};

}  // namespace cluster::group
