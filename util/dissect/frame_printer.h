// The dissector's output: a line per frame, with --segments a line per segment, and a summary. The endpoints'
// own code checks frames, and that of traces prints them; nothing here knows the wire format.
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
  bool others = false;      ///< also UDP datagrams of other protocols
};

class FramePrinter {
 public:
  FramePrinter(const Wanted& wanted, std::FILE* out) : wanted_(wanted), out_(out) {}

  /// `at_ns` after the first packet of the capture.
  void take(const UdpPacket& datagram, std::uint64_t at_ns);

  /// Wanted::count frames have been printed.
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
