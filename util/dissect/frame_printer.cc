#include "frame_printer.h"

#include <cinttypes>

#include "print/print.h"
#include "wire/admit.h"
#include "wire/frame.h"
#include "wire/segment.h"

namespace cluster::dissect {
namespace {

bool has_magic(ConstBytes bytes) {
  return !bytes.empty() && std::to_integer<std::uint8_t>(bytes[0]) == wire::kMagic;
}

/// The trailer behind a frame for which the sender's kernel had no hardware address.
bool is_address_trailer(ConstBytes bytes) {
  return bytes.size() == sizeof(wire::AddressTrailer) &&
         std::to_integer<std::uint8_t>(bytes[0]) == wire::AddressTrailer::kMagic;
}

/// If a frame was too long for its path, its parts begin and end anywhere in it.
void write_segments(const wire::FrameView& frame, std::FILE* out) {
  ConstBytes bytes = frame.segments;
  if (frame.in_part()) {
    std::fprintf(out, "             a part of segments, %zu bytes\n", bytes.size());
    return;
  }
  wire::Segment segment;
  while (!bytes.empty()) {
    const std::size_t header = wire::decode(bytes, segment);
    if (header == 0 || bytes.size() - header < segment.length) {
      std::fprintf(out, "             malformed, %zu bytes\n", bytes.size());
      return;
    }
    std::fprintf(out, "             %s\n", wire::print(segment).c_str());
    bytes = bytes.subspan(header + segment.length);
  }
}

}  // namespace

bool FramePrinter::matches(const UdpPacket& datagram) const {
  if (wanted_.port != 0 && datagram.from.port() != wanted_.port && datagram.to.port() != wanted_.port)
    return false;
  return wanted_.peer.empty() || datagram.from.ip_text() == wanted_.peer ||
         datagram.to.ip_text() == wanted_.peer;
}

void FramePrinter::write(const UdpPacket& datagram, std::uint64_t at_ns, const std::string& text) {
  std::fprintf(out_, "%3" PRIu64 ".%09" PRIu64 " %s > %s %s\n", at_ns / 1'000'000'000, at_ns % 1'000'000'000,
               datagram.from.text().c_str(), datagram.to.text().c_str(), text.c_str());
}

void FramePrinter::take(const UdpPacket& datagram, std::uint64_t at_ns) {
  if (!matches(datagram)) return;
  ConstBytes rest = datagram.payload;
  if (!has_magic(rest)) {
    ++others_;
    if (wanted_.others) write(datagram, at_ns, "another protocol, " + std::to_string(rest.size()) + " bytes");
    return;
  }
  while (!rest.empty() && !complete()) {
    wire::FrameView frame;
    if (is_address_trailer(rest)) return write(datagram, at_ns, "the sender's hardware address");
    const wire::Refusal refusal = wire::admit(rest, frame);
    if (refusal != wire::Refusal::none) {
      ++(datagram.cut_off ? cut_off_ : refused_);
      const char* reason = datagram.cut_off                     ? "cut off by the capture, "
                           : refusal == wire::Refusal::checksum ? "damaged, "
                                                                : "malformed, ";
      write(datagram, at_ns, reason + std::to_string(rest.size()) + " bytes");
      return;
    }
    ++frames_;
    write(datagram, at_ns, wire::print(frame));
    if (wanted_.segments) write_segments(frame, out_);
    rest = rest.subspan(frame.length);
  }
}

std::string FramePrinter::summary() const {
  std::string text = std::to_string(frames_) + (frames_ == 1 ? " frame" : " frames");
  if (refused_ != 0) text += ", " + std::to_string(refused_) + " refused";
  if (cut_off_ != 0) text += ", " + std::to_string(cut_off_) + " cut off by the capture";
  if (others_ != 0) text += ", " + std::to_string(others_) + " other datagrams";
  return text;
}

}  // namespace cluster::dissect
