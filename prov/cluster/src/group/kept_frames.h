// The frames of a stream that some listener may still miss: a ring of kStreamWindow bodies. Each has space for a header in front
// of it, which is written anew whenever the frame is sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "base/units.h"
#include "carrier/carrier.h"
#include "group/limits.h"
#include "link/link.h"

namespace cluster::group {

struct StreamName {
  std::uint32_t id = 0;
  std::uint64_t key = 0;         ///< of the group
  std::uint64_t membership = 0;  ///< of its sender: grows from one to the next
};

/// A member of the group as a receiver of this side's stream: how far it is, and what it was sent and asked. SenderStream changes it.
struct Listener {
  static constexpr std::uint64_t kNoPart = ~std::uint64_t{0};

  SocketAddress name;
  carrier::Carrier* carrier = nullptr;
  bool posted =
      false;  ///< something was posted to the carrier; the caller then marks it (Group::take_posted)
  bool started = false;    ///< `start` is known: a message begins there
  bool start_due = false;  ///< it has not been told
  std::uint64_t start = 0;
  std::uint64_t arrived = 0;     ///< it has all frames before this
  std::uint64_t window_end = 0;  ///< it takes all frames before this
  std::uint64_t cursor = 0;      ///< by unicast: the next frame for it
  std::uint64_t missed = 0;      ///< frames of the train under way (pace.h)
  bool by_unicast = false;
  struct Part {
    std::uint64_t of = kNoPart;  ///< the frame of which it was sent a part...
    std::size_t end = 0;         ///< ...up to here
  };
  Part part{};
  unsigned unheard = 0;  ///< reports in a row without a frame by multicast
  Time asked_at{};       ///< the last question since its last report
  Duration silent{0};    ///< how long it has been asked without an answer
};

struct KeptFrame {
  std::unique_ptr<std::byte[]> bytes;
  std::size_t size = 0;  ///< of the body
  Time sent_at{};
  Time repaired_at{};
  bool repaired = false;
  bool repair_due = false;
  std::vector<Listener*> missing;  ///< they reported it missing since its last repair
};

class KeptFrames {
 public:
  KeptFrames(const StreamName& stream, std::size_t body_max)
      : stream_(stream), body_max_(body_max), frames_(kStreamWindow) {
    spare_.reserve(kStreamWindow);  // to release frames never needs memory
  }

  /// The frames [base, next) are kept; all listeners have the frames before `base`.
  std::uint64_t base() const { return base_; }
  std::uint64_t next() const { return next_; }
  void release_before(std::uint64_t base);
  KeptFrame& at(std::uint64_t sequence) { return frames_[sequence % kStreamWindow]; }
  const KeptFrame& at(std::uint64_t sequence) const { return frames_[sequence % kStreamWindow]; }

  /// Where the body of the next frame is written; append() then makes it one.
  Bytes blank();
  void append(std::size_t size);

  /// Sends frames by multicast and returns how many the link took. `report`: members must report after the newest.
  std::size_t send(Time now, link::Link& link, const link::Path& path,
                   std::span<const std::uint64_t> sequences, bool report);
  /// Sends a frame again unasked, unless its repair is due; false if it was not sent.
  bool repeat(Time now, link::Link& link, const link::Path& path, std::uint64_t sequence);
  /// Sends a frame to one member, in parts if the member's path carries shorter frames. False if the carrier has no space for all
  /// of it; the next call for this frame continues there.
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
