// Which frames of one rail are lost, after RACK (RFC 8985) but without its ambiguities: the peer names the
// newest transmission that has arrived. A frame whose latest sending went out before that one, and that has
// not been acknowledged by the same word, was overtaken. It is held for lost once it is overdue:
//
//   sent + reply time + reorder window                       if overtaken by more than kPacketThreshold
//   sent + reply time + reorder window + reply time          if by fewer: weak evidence, more patience
//
// The reorder window begins at a quarter of the round trip and lives between that and four of them
// (what arrives first makes the samples, so where much is reordered they are short). It
// widens at once to what is seen (a frame that arrives after having been overtaken shows by how
// much; one repaired in vain shows it was too small) and shrinks slowly while neither happens.
//
// Transmissions are remembered in the order they were sent. Whatever is older than the newest arrival
// and has been settled leaves at the front, so each is looked at a constant number of times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/ring_queue.h"
#include "base/sequence.h"
#include "base/units.h"
#include "multipath/rtt_estimator.h"
#include "reliability/send_window.h"

namespace cluster::multipath {

class LossDetector {
 public:
  void sent(Sequence transmission, Sequence sequence, Time now);
  /// The peer says that `newest` has arrived and, up to `known_end`, which frames have. Returns when
  /// `newest` was sent if that is news and still remembered.
  std::optional<Time> newest_arrived(Sequence newest, Sequence known_end);
  /// The peer's word covers more, and has nothing new of this rail.
  void covered(Sequence known_end) { known_end_ = known_end; }
  /// A frame has been acknowledged for the first time; called before newest_arrived() of the same
  /// acknowledgement.
  void arrived(Sequence sequence, const reliability::Flight& flight, const RttEstimator& reply_time);
  /// The peer says that it got so many frames in vain.
  void on_spurious_retransmits(Time now, const RttEstimator& reply_time);

  /// Marks what is lost by now, returns how many, and sets deadline() for what may be soon.
  std::size_t detect(Time now, const RttEstimator& reply_time, reliability::SendWindow& frames);
  /// When the next frame becomes overdue; kNever if none has been overtaken.
  Time deadline() const { return deadline_; }
  /// The rail is silent: marks everything that travels on it, returns how many.
  std::size_t give_up(reliability::SendWindow& frames);
  std::size_t remembered() const { return transmissions_.size(); }
  bool knows(Sequence transmission) const { return find(transmission).has_value(); }
  Sequence newest() const { return newest_; }
  /// Bytes of memory it holds.
  std::size_t footprint() const { return transmissions_.footprint(); }
  bool remembers(Sequence transmission, Sequence sequence) const;
  Duration reorder_window(const RttEstimator& reply_time) const;

 private:
  struct Transmission {
    Sequence number;
    Sequence sequence;
    Time sent_at{};
  };

  /// What is settled but not older than the newest arrival is remembered up to here.
  static constexpr std::size_t kTransmissionsKept = 64;
  static constexpr std::int32_t kPacketThreshold = 3;
  static constexpr int kReorderWindowMax = 4;  ///< round trips
  static constexpr int kReorderWindowDecay =
      32;  ///< the window shrinks by this fraction per quiet round trip

  /// Index of the record with this number, if it is there.
  std::optional<std::size_t> find(Sequence number) const;
  Duration patience(std::int32_t overtaken_by, const RttEstimator& reply_time) const;
  void forget_settled(const reliability::SendWindow& frames);
  void shrink(Time now, const RttEstimator& reply_time);

  RingQueue<Transmission> transmissions_;
  bool any_arrived_ = false;
  Sequence newest_;  ///< latest transmission known to have arrived
  Time newest_sent_at_{};
  Sequence known_end_;   ///< the last word covered the frames before this one
  Duration widened_{0};  ///< the reorder window, before its bounds
  Time shrink_at_{};
  Time widen_at_{};  ///< in-vain repairs of one round trip count once
  Time deadline_ = kNever;
};

}  // namespace cluster::multipath
