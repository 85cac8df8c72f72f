// What the dissector writes: a line per frame, a line per segment if wanted, and at the end what it has seen.
// Frames go through the gate that endpoints have, and become text by what logs and traces use; nothing here
// knows a format.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "udp_packet.h"

namespace cluster::dissect {

struct Wanted {
  std::string peer;   ///< an IP address that must be sender or receiver; empty: any
  unsigned port = 0;  ///< likewise; 0: any
  bool segments = false;
  std::uint64_t count = 0;  ///< end after so many frames; 0: never
  bool others = false;      ///< also datagrams that are none of ours
};

class FramePrinter {
 public:
  FramePrinter(const Wanted& wanted, std::FILE* out) : wanted_(wanted), out_(out) {}

  /// `at_ns` after the first packet of the capture.
  void take(const UdpPacket& datagram, std::uint64_t at_ns);

  /// As many frames as wanted have been seen.
  bool complete() const { return wanted_.count != 0 && frames_ >= wanted_.count; }
  /// "812 frames, 3 damaged, 14 other datagrams"
  std::string summary() const;

 private:
  bool matches(const UdpPacket& datagram) const;
  void write(const UdpPacket& datagram, std::uint64_t at_ns, const std::string& text);

  Wanted wanted_;
  std::FILE* out_;
  std::uint64_t frames_ = 0;
  std::uint64_t refused_ = 0;
  std::uint64_t cut_off_ = 0;
  std::uint64_t others_ = 0;
};

}  // namespace cluster::dissect
