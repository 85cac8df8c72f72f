// Keeps the frames of a stream until all listeners have them, in a ring of kStreamWindow bodies. Before each
// body there is space for a header. Each transmission writes a new header.
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
  std::uint64_t key = 0;         ///< key of the group
  std::uint64_t membership = 0;  ///< membership of the sender; each new membership has a larger number
};

/// A listener is a member that receives the stream of this side. This struct records what the listener has
/// received, what was sent to it, and when it was asked for a report. SenderStream, Group and KeptFrames
/// change the record.
struct Listener {
  static constexpr std::uint64_t kNoPart = ~std::uint64_t{0};

  SocketAddress name;
  carrier::Carrier* carrier = nullptr;
  bool posted = false;     ///< the carrier has new segments; Group::take_posted() clears this flag
  bool started = false;    ///< `start` is set, and a message begins there
  bool start_due = false;  ///< the listener has not been told `start` yet
  std::uint64_t start = 0;
  std::uint64_t arrived = 0;     ///< the listener has all frames before this
  std::uint64_t window_end = 0;  ///< the listener accepts all frames before this
  std::uint64_t cursor = 0;      ///< the next frame to send by unicast
  std::uint64_t missed = 0;      ///< number of frames that the listener missed in the current train (pace.h)
  bool by_unicast = false;
  struct Part {
    std::uint64_t of = kNoPart;  ///< a frame of which only a part was sent, or kNoPart
    std::size_t end = 0;         ///< the number of bytes of that frame that were sent
  };
  Part part{};
  unsigned unheard = 0;  ///< consecutive reports without a frame received by multicast
  Time asked_at{};       ///< time of the last question; zero after a report
  Duration silent{0};    ///< time for which the listener has not answered questions
};

struct KeptFrame {
  std::unique_ptr<std::byte[]> bytes;
  std::size_t size = 0;  ///< size of the body
  Time sent_at{};
  Time repaired_at{};
  bool repaired = false;
  bool repair_due = false;
  /// Listeners that have reported the frame as missing and have not been sent a repair.
  std::vector<Listener*> missing;
};

class KeptFrames {
 public:
  KeptFrames(const StreamName& stream, std::size_t body_max)
      : stream_(stream), body_max_(body_max), frames_(kStreamWindow) {
    spare_.reserve(kStreamWindow);  // so that release_before() needs no memory
  }

  /// The kept frames are [base(), next()). All listeners have the frames before base().
  std::uint64_t base() const { return base_; }
  std::uint64_t next() const { return next_; }
  void release_before(std::uint64_t base);
  KeptFrame& at(std::uint64_t sequence) { return frames_[sequence % kStreamWindow]; }
  const KeptFrame& at(std::uint64_t sequence) const { return frames_[sequence % kStreamWindow]; }

  /// Returns the memory for the body of the next frame. append() then adds the frame.
  Bytes blank();
  void append(std::size_t size);

  /// Sends frames by multicast. Returns the number of frames that the link accepted. `report`: true if the
  /// listeners must report once the newest frame has arrived.
  std::size_t send(Time now, link::Link& link, const link::Path& path,
                   std::span<const std::uint64_t> sequences, bool report);
  /// Retransmits a frame by multicast although no listener has reported it as missing. Returns false if the
  /// frame was not sent, for example because a repair of the frame is already due.
  bool repeat(Time now, link::Link& link, const link::Path& path, std::uint64_t sequence);
  /// Sends a frame to one listener by unicast, in several parts if the path to the listener carries only
  /// shorter frames. Returns false if the carrier has no space for the whole frame. In this case the next
  /// call for the same frame sends the rest.
  bool post(Listener& listener, std::uint64_t sequence) const;

 private:
  StreamName stream_;
  std::size_t body_max_;
  std::vector<KeptFrame> frames_;
  std::vector<std::unique_ptr<std::byte[]>>
      /// Memory of released frames; the last entry is reused first, because it may still be in a cache.
      spare_;
  std::unique_ptr<link::OutBurst> burst_ = std::make_unique<link::OutBurst>();
  std::uint64_t base_ = 0;
  std::uint64_t next_ = 0;
};

}  // namespace cluster::group
