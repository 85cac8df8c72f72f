// The frames of a stream that a listener may still miss: a ring of kStreamWindow bodies. Each body has space
// for a header in front, which is written anew for each transmission.
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
  std::uint64_t membership = 0;  ///< of its sender; each new one is larger
};

/// A member of the group that receives this side's stream: how far it is, what it was sent, and what it was
/// asked. SenderStream changes it.
struct Listener {
  static constexpr std::uint64_t kNoPart = ~std::uint64_t{0};

  SocketAddress name;
  carrier::Carrier* carrier = nullptr;
  bool posted =
      false;  ///< something was posted to the carrier, which the caller then marks (Group::take_posted)
  bool started = false;    ///< `start` is known: a message begins there
  bool start_due = false;  ///< the listener does not know its start yet
  std::uint64_t start = 0;
  std::uint64_t arrived = 0;     ///< the listener has all frames before this
  std::uint64_t window_end = 0;  ///< the listener accepts all frames before this
  std::uint64_t cursor = 0;      ///< by unicast: the next frame for the listener
  std::uint64_t missed = 0;      ///< frames missed in the current train (pace.h)
  bool by_unicast = false;
  struct Part {
    std::uint64_t of = kNoPart;  ///< the frame whose first bytes the listener was sent...
    std::size_t end = 0;         ///< ...up to here
  };
  Part part{};
  unsigned unheard = 0;  ///< reports in a row without a frame by multicast
  Time asked_at{};       ///< the last question since the listener's last report
  Duration silent{0};    ///< how long the listener has been asked without an answer
};

struct KeptFrame {
  std::unique_ptr<std::byte[]> bytes;
  std::size_t size = 0;  ///< of the body
  Time sent_at{};
  Time repaired_at{};
  bool repaired = false;
  bool repair_due = false;
  std::vector<Listener*> missing;  ///< listeners that have reported it missing since its last repair
};

class KeptFrames {
 public:
  KeptFrames(const StreamName& stream, std::size_t body_max)
      : stream_(stream), body_max_(body_max), frames_(kStreamWindow) {
    spare_.reserve(kStreamWindow);  // to release frames never needs memory
  }

  /// The kept frames are [base, next). All listeners have the frames before `base`.
  std::uint64_t base() const { return base_; }
  std::uint64_t next() const { return next_; }
  void release_before(std::uint64_t base);
  KeptFrame& at(std::uint64_t sequence) { return frames_[sequence % kStreamWindow]; }
  const KeptFrame& at(std::uint64_t sequence) const { return frames_[sequence % kStreamWindow]; }

  /// Where to write the body of the next frame. append() then adds the frame.
  Bytes blank();
  void append(std::size_t size);

  /// Sends frames by multicast and returns how many the link took. `report`: members must report after the
  /// newest.
  std::size_t send(Time now, link::Link& link, const link::Path& path,
                   std::span<const std::uint64_t> sequences, bool report);
  /// Retransmits a frame that no listener has asked for, unless its repair is due. Returns false if the frame
  /// was not sent.
  bool repeat(Time now, link::Link& link, const link::Path& path, std::uint64_t sequence);
  /// Sends a frame to one member, in parts if the member's path carries only shorter frames. Returns false if
  /// the carrier lacks space for the whole frame; the next call for this frame continues there.
  bool post(Listener& listener, std::uint64_t sequence) const;

 private:
  StreamName stream_;
  std::size_t body_max_;
  std::vector<KeptFrame> frames_;
  std::vector<std::unique_ptr<std::byte[]>>
      spare_;  ///< memory of released frames: what was used last is still in a cache
  std::unique_ptr<link::OutBurst> burst_ = std::make_unique<link::OutBurst>();
  std::uint64_t base_ = 0;
  std::uint64_t next_ = 0;
};

}  // namespace cluster::group
