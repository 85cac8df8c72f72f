// The frames of a stream that some listener may still miss: a ring of kStreamWindow bodies, each with space for a header in
// front of it, which is written anew whenever the frame is sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/units.h"
#include "group/limits.h"
#include "group/listener.h"
#include "link/link.h"

namespace cluster::group {

/// What tells the frames of a stream from all others.
struct StreamName {
  std::uint32_t id = 0;
  std::uint64_t key = 0;         ///< of the group
  std::uint64_t membership = 0;  ///< of its sender: grows from one to the next
};

struct KeptFrame {
  std::unique_ptr<std::byte[]> bytes;
  std::size_t size = 0;  ///< of the body
  Time sent_at{};
  Time repaired_at{};
  bool repaired = false;
  bool repair_due = false;
  std::vector<Listener*> missing;  ///< those that have reported it missing since it was last repaired
};

class KeptFrames {
 public:
  KeptFrames(const StreamName& stream, std::size_t body_max)
      : stream_(stream), body_max_(body_max), frames_(kStreamWindow) {
    spare_.reserve(kStreamWindow);  // to release frames never needs memory
  }

  /// Kept are [base, next); what lies before `base` all listeners have.
  std::uint64_t base() const { return base_; }
  std::uint64_t next() const { return next_; }
  void release_before(std::uint64_t base);
  KeptFrame& at(std::uint64_t sequence) { return frames_[sequence % kStreamWindow]; }
  const KeptFrame& at(std::uint64_t sequence) const { return frames_[sequence % kStreamWindow]; }

  /// Where the body of the next frame is written; append() then makes it one.
  Bytes blank();
  void append(std::size_t size);

  /// Sends frames by multicast and returns how many the link took. `report`: members shall report after the newest.
  std::size_t send(Time now, link::Link& link, const link::Path& path,
                   std::span<const std::uint64_t> sequences, bool report);
  /// Sends one again unasked, unless it is about to be; false if it has not left.
  bool repeat(Time now, link::Link& link, const link::Path& path, std::uint64_t sequence);
  /// Sends one to one member, in parts where its path carries shorter frames; false if its carrier has no free bytes for all
  /// of it: the next call for this frame goes on where this one stopped.
  bool post(Listener& listener, std::uint64_t sequence) const;

 private:
  StreamName stream_;
  std::size_t body_max_;
  std::vector<KeptFrame> frames_;
  std::vector<std::unique_ptr<std::byte[]>>
      spare_;  ///< memory of released ones: what was used last is still in a cache
  std::unique_ptr<link::OutBurst> burst_ = std::make_unique<link::OutBurst>();
  std::uint64_t base_ = 0;
  std::uint64_t next_ = 0;
};

}  // namespace cluster::group
