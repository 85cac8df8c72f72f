// How long a frame the path carries (RFC 8899). Both links say what they take, but a network between may take
// less and drop longer frames without a word: so before more than kBasePlpmtu bytes (an Ethernet of 1500) are
// sent, a PMTU probe finds out whether they arrive. It is a frame of full length that carries only padding; if
// it has to be sent again it goes without, so no data ever waits for the result. After kTries lost probes the
// base is used.
//
// Invariant: at most one PMTU probe is outstanding. It is retransmitted by the flow's own timers.
#pragma once

#include <cstddef>
#include <optional>

#include "base/sequence.h"

namespace cluster::multipath {

class PathMtu {
 public:
  enum class Answer : std::uint8_t { none, yes, no };

  bool pmtu_probe_due(std::size_t longest) const {
    return longest > kBasePlpmtu && !pmtu_probe_ && !answered_ && tries_ < kTries;
  }
  /// True if there is nothing (more) to find out.
  bool settled(std::size_t longest) const { return longest <= kBasePlpmtu || answered_; }
  void on_pmtu_probe_sent(Sequence probe) {
    pmtu_probe_ = probe;
    whole_ = true;
    ++tries_;
  }
  bool is_pmtu_probe(Sequence s) const { return pmtu_probe_ == s; }
  /// The probe is sent again without its padding.
  void on_pmtu_probe_lost() { whole_ = false; }
  /// The peer has the probe, with its padding or without.
  Answer on_pmtu_probe_acked() {
    pmtu_probe_.reset();
    answered_ = whole_ || tries_ == kTries;
    return whole_ ? Answer::yes : answered_ ? Answer::no : Answer::none;
  }

  /// Needs no probe: an IPv4 frame on an Ethernet of 1500.
  static constexpr std::size_t kBasePlpmtu = 1472;

 private:
  static constexpr unsigned kTries = 4;

  std::optional<Sequence> pmtu_probe_;
  bool whole_ = false;  ///< the probe outstanding still has its padding
  bool answered_ = false;
  unsigned tries_ = 0;
};

}  // namespace cluster::multipath
