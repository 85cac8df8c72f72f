// How long a frame the path carries. Both links say what they take, but what lies between may take less
// and say nothing: so more than kBasePlpmtu bytes (an Ethernet of 1500) are proven first. The proof is a
// frame of full length that carries only padding; if it has to be sent again it goes without, so nobody's
// data ever waits for an answer to this question. After a few tries in vain it is answered: no.
#pragma once

#include <cstddef>
#include <optional>

#include "base/sequence.h"

namespace cluster::multipath {

class PathMtu {
 public:
  enum class Answer : std::uint8_t { none, yes, no };

  bool wants_probe(std::size_t longest) const {
    return longest > kBasePlpmtu && !probe_ && !answered_ && tries_ < kTries;
  }
  /// True if there is nothing (more) to find out.
  bool settled(std::size_t longest) const { return longest <= kBasePlpmtu || answered_; }
  void sent(Sequence probe) {
    probe_ = probe;
    whole_ = true;
    ++tries_;
  }
  bool is_probe(Sequence s) const { return probe_ == s; }
  /// The probe goes again, and without its padding.
  void lost() { whole_ = false; }
  /// The peer has the probe, with its padding or without.
  Answer arrived() {
    probe_.reset();
    answered_ = whole_ || tries_ == kTries;
    return whole_ ? Answer::yes : answered_ ? Answer::no : Answer::none;
  }

  /// Needs no proof: an IPv4 frame on an Ethernet of 1500.
  static constexpr std::size_t kBasePlpmtu = 1472;

 private:
  static constexpr unsigned kTries = 4;

  std::optional<Sequence> probe_;
  bool whole_ = false;
  bool answered_ = false;
  unsigned tries_ = 0;
};

}  // namespace cluster::multipath
