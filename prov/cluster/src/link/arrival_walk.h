// Walks the frames of an arrival. The kernel joins datagrams of one source address and one length, whether the peer at that
// address has sent them or a forger has: a forged frame may lie in front of, between or behind genuine ones. Where one datagram
// ends and the next begins the kernel says (InFrame::segment), and nothing that a frame says of its own length changes that:
//
// - no frame reaches beyond its datagram;
// - a frame that is refused takes the rest of its own datagram with it, and no other.
//
// Where the link cannot say, the whole arrival counts as one datagram.
#pragma once

#include <algorithm>
#include <cstddef>

#include "link/link.h"

namespace cluster::link {

class ArrivalWalk {
 public:
  ArrivalWalk() = default;
  explicit ArrivalWalk(const InFrame& arrival)
      : rest_(arrival.bytes),
        joined_(arrival.segment != 0),
        segment_(arrival.segment != 0 ? arrival.segment : arrival.bytes.size()),
        left_(std::min(segment_, rest_.size())) {}

  bool done() const { return rest_.empty(); }
  /// What is left of this datagram: the next frame lies in it.
  Bytes datagram() const { return rest_.first(left_); }
  /// What lies behind a frame of this length, as far as another such frame reaches.
  ConstBytes behind(std::size_t length) const {
    return rest_.subspan(length).first(std::min(length, rest_.size() - length));
  }
  /// Where frames of this length may follow the next one: all that is left, if each datagram is one such frame.
  Bytes run(std::size_t length) const { return length == segment_ ? rest_ : datagram(); }

  /// Behind so many frames of this length, which lie in run(length).
  void pass(std::size_t count, std::size_t length) {
    const std::size_t bytes = count * length;
    rest_ = rest_.subspan(bytes);
    left_ = bytes < left_ ? left_ - bytes : std::min(segment_, rest_.size());
  }
  /// To the next datagram.
  void pass_datagram() { pass(1, left_); }
  /// Behind a frame of this length that was refused: to the next datagram, or if it is not known where that begins, behind what
  /// the frame says of its own length.
  void pass_refused(std::size_t length) { pass(1, joined_ ? left_ : length); }

 private:
  Bytes rest_;
  bool joined_ = false;      ///< it is known where datagrams end
  std::size_t segment_ = 0;  ///< of the arrival; of all of it, if that is not known
  std::size_t left_ = 0;     ///< of this datagram
};

}  // namespace cluster::link
